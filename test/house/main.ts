import { startTestDatabase, stopTestDatabase } from '../support/database.ts'
import { executedFiles } from './executed-files.ts'
import { functionSizes, linesIn, percentile } from './lines-of-code.ts'

/** A size of the house that must not grow unnoticed. */
interface Measure {
  readonly text: string
  readonly isWithin: boolean
}

const MOST = { db: 1900, cli: 6910, median: 6, percentile95: 26, files: 50 } as const

/** Prints the sizes of the source, and exits with 1 if one exceeds its limit. */
async function main(): Promise<void> {
  const [db, cli, sizes] = [linesIn('src/db'), linesIn('src/cli'), functionSizes('src')]
  const [median, percentile95] = [percentile(sizes, 0.5), percentile(sizes, 0.95)]
  await startTestDatabase()
  const files = await executedFiles().finally(stopTestDatabase)
  const measures: Measure[] = [
    { text: `src/db: ${db} lines of code`, isWithin: db <= MOST.db },
    { text: `src/cli: ${cli} lines of code`, isWithin: cli <= MOST.cli },
    {
      text: `functions: median ${median}, 95th percentile ${percentile95}`,
      isWithin: median <= MOST.median && percentile95 <= MOST.percentile95,
    },
    { text: `a payment executes ${files.length} files`, isWithin: files.length <= MOST.files },
  ]
  for (const { text, isWithin } of measures)
    process.stdout.write(`${text}${isWithin ? '' : `: over the limit (${JSON.stringify(MOST)})`}\n`)
  if (process.argv.includes('--files')) process.stdout.write(`${files.join('\n')}\n`)
  process.exitCode = measures.every(({ isWithin }) => isWithin) ? 0 : 1
}

await main()
