import { CommanderError } from 'commander'
import { createProgram, leadingWord, spellHelp } from './program.ts'

/** Runs a command line; what went wrong is printed, and the exit code is set (contract 6): 0 done, 1 refused or failed, 2 wrong usage. */
export async function runCli(words: readonly string[]): Promise<void> {
  try {
    const program = await createProgram(leadingWord(words))
    await program.parseAsync(spellHelp(program, words), { from: 'user' })
  } catch (thrown) {
    process.exitCode = await exitCodeOf(thrown)
  }
}

async function exitCodeOf(thrown: unknown): Promise<number> {
  // commander has said itself what is wrong.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  const [{ explainError }, { printError }] = await Promise.all([import('./explain-error.ts'), import('./output.ts')])
  printError(explainError(thrown))
  return thrown instanceof Error && thrown.name === 'UsageError' ? 2 : 1
}
