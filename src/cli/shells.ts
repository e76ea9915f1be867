export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/**
 * The script for each shell. It runs `billing-cli complete <words…>`, the last of which is the word at the cursor, and reads a candidate, a
 * tab and a description from each line. So it needs no update when commands change. Without candidates, it offers file names.
 */
export const COMPLETION_SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# completion of billing-cli for bash
_billing_cli() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _billing_cli billing-cli`,
  zsh: `#compdef billing-cli
# completion of billing-cli for zsh
_billing_cli() {
  local line
  local -a offered
  while IFS= read -r line; do
    offered+=("\${line%%$'\\t'*}:\${line#*$'\\t'}")
  done < <("\${words[1]}" complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#offered} )); then _describe -V 'billing-cli' offered; else _files; fi
}
(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
compdef _billing_cli billing-cli`,
  fish: `# completion of billing-cli for fish
function __billing_cli
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l offered ($words[1] complete $words[2..] "$current" 2>/dev/null)
  if test (count $offered) -gt 0
    printf '%s\\n' $offered
  else
    __fish_complete_path "$current"
  end
end
complete -c billing-cli -f -a '(__billing_cli)'`,
}
