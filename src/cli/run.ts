import { CommanderError } from 'commander'
import { authorizeWords } from './authorize.ts'
import { createProgram, leadingWord, spellHelp, withoutWords } from './program.ts'
import { ACCOUNT, isRemote, type Who } from './who.ts'

/** Runs a command line; what went wrong is printed, and the exit code is set (R260): 0 done, 1 refused or failed, 2 wrong usage. */
export async function runCli(words: readonly string[], who: Who = ACCOUNT): Promise<void> {
  if (words[0] === 'complete' && !isRemote(who)) return complete(words.slice(1))
  const program = await createProgram(leadingWord(words), who, words.includes('--json'))
  try {
    authorizeWords(program, words, who)
    const operator = operatorOf(words)
    if (operator === null) await program.parseAsync(spellHelp(program, words), { from: 'user' })
    else await runAs(operator)
  } catch (thrown) {
    process.exitCode = await exitCodeOf(thrown, words)
  }
}

/** The operator of the line `as NAME`, which ends as another line; null for any other. */
function operatorOf(words: readonly string[]): string | null {
  const [first, name, ...others] = words.filter((word) => word !== '--json')
  return first === 'as' && name !== undefined && !name.startsWith('-') && others.length === 0 ? name : null
}

async function runAs(name: string): Promise<void> {
  const { lineOf, whoIs } = await import('./ssh-line.ts')
  const who = await whoIs(name)
  await runCli(lineOf(who), who)
}

/** Answers the completion scripts; not listed in help. Any failure offers no completions and leaves the shell's line unchanged. */
async function complete(words: readonly string[]): Promise<void> {
  try {
    const { candidatesFor } = await import('./complete.ts')
    const candidates = await candidatesFor(words)
    process.stdout.write(candidates.map(({ value, description }) => `${value}\t${description}\n`).join(''))
  } catch {
    process.exitCode = 1
  }
}

async function exitCodeOf(thrown: unknown, words: readonly string[]): Promise<number> {
  const isUsage = thrown instanceof CommanderError || (thrown instanceof Error && thrown.name === 'UsageError')
  if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0
  const asJson = words.includes('--json') || (await isSshLineJson(words))
  // commander has already printed the error for people.
  if (!(thrown instanceof CommanderError) || asJson) await report(thrown, asJson)
  return isUsage ? 2 : 1
}

/** Whether the SSH command line contains `--json`, even if it could not be fully parsed. */
async function isSshLineJson(words: readonly string[]): Promise<boolean> {
  if (operatorOf(words) === null) return false
  const { sshCommand } = await import('#config/environment.ts')
  return (sshCommand() ?? '').split(/\s+/).includes('--json')
}

async function report(thrown: unknown, asJson: boolean): Promise<void> {
  const [{ codeOf, explainError }, { printError, printJsonError }] = await Promise.all([
    import('./explain-error.ts'),
    import('./output.ts'),
  ])
  const message = thrown instanceof CommanderError ? sentenceOf(thrown) : explainError(thrown)
  if (asJson) printJsonError({ code: codeOf(thrown), message })
  else printError(message)
}

function sentenceOf({ code, message }: CommanderError): string {
  if (code === 'commander.help') return 'name a command: --help lists them'
  return withoutWords(message)
    .replace(/^error: /, '')
    .trim()
}
