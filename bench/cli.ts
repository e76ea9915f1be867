import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'
import { testEnvironment } from '../test/support/context.ts'
import { inRounds, spreadOf, type Bench, type Row } from './row.ts'

const CLI = join(import.meta.dirname, '..', 'bin', 'billing-cli')
/** Runs of each command in one round, of which the middle one counts. */
const RUNS = 5

const row = (name: string, what: string, must: number, goal: number): Row => ({
  name,
  what,
  floor: 'node -e 0',
  unit: 'ms',
  judged: 'multiple',
  must,
  goal,
})

/** The wall time of commands, from the start of the process to its end. */
export const cliBench: Bench = {
  rows: [
    row('cli-help', 'billing-cli --help', 2, 1.5),
    row('cli-command', 'a database command, billing-cli app list', 8, 5),
  ],
  async run(options) {
    const env = childEnvironment(testEnvironment())
    const commands = {
      floor: [process.execPath, '-e', '0'],
      help: [CLI, '--help'],
      command: [CLI, 'app', 'list'],
    }
    const rounds = await inRounds(options, async () => {
      const times = { floor: [] as number[], help: [] as number[], command: [] as number[] }
      for (let run = 0; run < (options.isQuick ? 1 : RUNS); run += 1) {
        for (const side of ['floor', 'help', 'command'] as const) times[side].push(await timeOf(commands[side], env))
      }
      const { floor, help, command } = times
      return { floor: spreadOf(floor).median, help: spreadOf(help).median, command: spreadOf(command).median }
    })
    return {
      'cli-help': { rounds: rounds.map(({ floor, help }) => ({ ours: help, floor })) },
      'cli-command': { rounds: rounds.map(({ floor, command }) => ({ ours: command, floor })) },
    }
  },
}

async function timeOf([program = '', ...parameters]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const startedMs = performance.now()
  const [code] = (await once(spawn(program, parameters, { env, stdio: 'ignore' }), 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${program} ended with ${code ?? 'a signal'}`)
  return performance.now() - startedMs
}
