import { runCli } from './run.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may have seen enough: billing-cli app list | head -1
  if (error.code === 'EPIPE') return
  process.stderr.write(`error: the output cannot be written: ${error.code ?? error.message}\n`)
  process.exitCode = 1
})

await runCli(process.argv.slice(2))
// What Node would take down piece by piece goes with the process; errors of writing have come by then.
setImmediate(() => process.exit())
