import { endProgram } from '#cli/end-program.ts'
import { runCli } from '#cli/run.ts'

/** A command line in a console that only reads: it may do what the role view may. The first argument is the operator's name, or empty. */
const [name = '', ...words] = process.argv.slice(2)
await runCli(words, { name: name === '' ? null : name, role: 'view' })
await endProgram()
