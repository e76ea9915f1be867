import { CommanderError } from 'commander'
import { createProgram, leadingWord, spellHelp } from './program.ts'

/** Exit codes of contract 6: 0 done, 1 refused or failed, 2 wrong usage. */
async function exitCodeOf(thrown: unknown): Promise<number> {
  // commander has said itself what is wrong.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  const [{ explainError }, { printError }] = await Promise.all([import('./explain-error.ts'), import('./output.ts')])
  printError(explainError(thrown))
  return thrown instanceof Error && thrown.name === 'UsageError' ? 2 : 1
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may have seen enough: billing-cli app list | head -1
  if (error.code === 'EPIPE') return
  process.stderr.write(`error: the output cannot be written: ${error.code ?? error.message}\n`)
  process.exitCode = 1
})

try {
  const words = process.argv.slice(2)
  const program = await createProgram(leadingWord(words))
  await program.parseAsync(spellHelp(program, words), { from: 'user' })
} catch (thrown) {
  process.exitCode = await exitCodeOf(thrown)
}
