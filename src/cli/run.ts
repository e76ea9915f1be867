import { CommanderError } from 'commander'
import { createProgram, leadingWord, spellHelp } from './program.ts'

/** Runs a command line; what went wrong is printed, and the exit code is set (R260): 0 done, 1 refused or failed, 2 wrong usage. */
export async function runCli(words: readonly string[]): Promise<void> {
  if (words[0] === 'complete') return complete(words.slice(1))
  try {
    const program = await createProgram(leadingWord(words))
    await program.parseAsync(spellHelp(program, words), { from: 'user' })
  } catch (thrown) {
    process.exitCode = await exitCodeOf(thrown)
  }
}

/** What the completion scripts ask; not in the list of commands. Whatever goes wrong, nothing is offered, and the shell's line stays whole. */
async function complete(words: readonly string[]): Promise<void> {
  try {
    const { candidatesFor } = await import('./complete.ts')
    const candidates = await candidatesFor(words)
    process.stdout.write(candidates.map(({ value, description }) => `${value}\t${description}\n`).join(''))
  } catch {
    process.exitCode = 1
  }
}

async function exitCodeOf(thrown: unknown): Promise<number> {
  // commander has said itself what is wrong.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  const [{ explainError }, { printError }] = await Promise.all([import('./explain-error.ts'), import('./output.ts')])
  printError(explainError(thrown))
  return thrown instanceof Error && thrown.name === 'UsageError' ? 2 : 1
}
