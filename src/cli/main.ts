import { CommanderError } from 'commander'
import { createProgram, leadingWord } from './program.ts'

/** Exit codes of contract 6: 0 done, 1 refused or failed, 2 wrong usage. */
async function exitCodeOf(thrown: unknown): Promise<number> {
  // commander has said itself what is wrong.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  const [{ explainError }, { printError }] = await Promise.all([import('./explain-error.ts'), import('./output.ts')])
  printError(explainError(thrown))
  return thrown instanceof Error && thrown.name === 'UsageError' ? 2 : 1
}

// The reader of a pipe may have seen enough: billing-cli app list | head -1
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

try {
  const program = await createProgram(leadingWord(process.argv.slice(2)))
  await program.parseAsync()
} catch (thrown) {
  process.exitCode = await exitCodeOf(thrown)
}
