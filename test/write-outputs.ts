import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '#cli/program.ts'
import { OUTPUTS_FILE } from '#cli/reference.ts'
import { leavesOf } from './cli/forms.ts'
import { inferSchema, shareNulls } from './support/infer-schema.ts'
import { scratchFolder } from './support/scratch.ts'

/** Tests elsewhere that run commands, too, in states that those of the command line do not make. */
const FURTHER = [
  'test/providers/versions.test.ts',
  'test/backups/verify-and-restore.test.ts',
  'test/scenarios/paid-time.test.ts',
  'test/reports/exact-sums.test.ts',
  'test/doctor/secret-leaks.test.ts',
  'test/upgrade/upgrade-package.test.ts',
]

/** Runs the tests of the command line, and writes the schema of what each command printed as JSON. */
const record = join(scratchFolder('outputs'), 'recorded.jsonl')
writeFileSync(record, '')
const commands = leavesOf(await createProgram()).map(({ path }) => path.join(' '))
const env = { ...process.env, PAYGATE_RECORD_OUTPUTS: record, PAYGATE_COMMANDS: JSON.stringify(commands) }
spawnSync(process.execPath, ['node_modules/mocha/bin/mocha.js', 'test/cli/**/*.test.ts', ...FURTHER], {
  env,
  stdio: 'inherit',
})

const seen = new Map<string, unknown[]>([
  ['docs', [[{ command: 'find', arguments: [], options: [], effect: 'reads', role: 'view', output: {} }]]],
])
for (const line of readFileSync(record, 'utf8').split('\n').filter(Boolean)) {
  const { command, value } = JSON.parse(line) as { command: string; value: unknown }
  seen.set(command, [...(seen.get(command) ?? []), value])
}
const schemas = shareNulls(
  Object.fromEntries(
    commands.sort().flatMap((command) => {
      const values = seen.get(command)
      return values ? [[command, inferSchema(values)]] : []
    }),
  ),
)
const lines = Object.entries(schemas).map(
  ([command, schema]) => `${JSON.stringify(command)}: ${JSON.stringify(schema)}`,
)
writeFileSync(OUTPUTS_FILE, `{\n${lines.join(',\n')}\n}\n`)
