import type { Command } from 'commander'

type Shell = 'bash' | 'zsh'

/**
 * A script that completes commands and options; after an option that takes a file, and where nothing is known, file names. zsh runs
 * the one for bash.
 */
export function completionScript(program: Command, shell: Shell): string {
  const cases = [...wordsByPath(program)].map(
    ([path, words]) => `    ${quote(path)}) offered=${quote(words.join(' '))} ;;`,
  )
  const forZsh = ['autoload -U +X compinit && compinit', 'autoload -U +X bashcompinit && bashcompinit']
  return [...(shell === 'zsh' ? forZsh : []), ...scriptOf(cases)].join('\n')
}

/** What may follow each command: `app` is followed by `create`, `app create` by `--name`. */
function wordsByPath(program: Command): Map<string, string[]> {
  const paths = new Map<string, string[]>()
  const globals = optionsOf(program)
  const visit = (command: Command, path: string) => {
    const children = command.commands.map((child) => child.name())
    paths.set(path, [...children, ...(path === '' ? ['help'] : optionsOf(command)), ...globals, '--help'])
    for (const child of command.commands) visit(child, `${path} ${child.name()}`.trim())
  }
  visit(program, '')
  const groups = program.commands.map((child) => child.name())
  paths.set('help', groups)
  return paths
}

function optionsOf(command: Command): string[] {
  return command.options.flatMap(({ long }) => (long === undefined ? [] : [long]))
}

/** The words before the cursor that are no options lead to the command, as far as they name one. */
function scriptOf(cases: readonly string[]): string[] {
  return [
    '# completion of billing-cli',
    '_billing_cli_words() {',
    '  case "$1" in',
    ...cases,
    '    *) return 1 ;;',
    '  esac',
    '}',
    '_billing_cli() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" command="" offered="" word index',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    '    word="${COMP_WORDS[index]}"',
    '    [[ $word == -* ]] && continue',
    '    _billing_cli_words "${command:+$command }$word" && command="${command:+$command }$word"',
    '  done',
    '  _billing_cli_words "$command"',
    '  COMPREPLY=($(compgen -W "$offered" -- "$current"))',
    '  case "${COMP_WORDS[COMP_CWORD-1]}" in',
    '    --file|--service-account) COMPREPLY=($(compgen -f -- "$current")) ;;',
    '  esac',
    '}',
    'complete -o default -F _billing_cli billing-cli',
  ]
}

/** In single quotes: nothing in them means anything to a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
