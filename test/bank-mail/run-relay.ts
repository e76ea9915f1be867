import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../../bin/bank-mail-relay')

interface Run {
  readonly code: number | null
  readonly output: string
  readonly error: string
}

/** Runs the relay program as a mail server's pipe does. */
export async function runRelay(
  mail: string | Buffer,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Run> {
  const child = spawn(PROGRAM, args, { env: { PATH: process.env['PATH'] ?? '', ...environment } })
  const said = { output: '', error: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.error += chunk.toString()))
  child.stdin.on('error', () => undefined)
  child.stdin.end(mail)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...said }
}
