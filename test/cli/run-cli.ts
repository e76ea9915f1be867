import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { expect } from 'chai'
import { testEnvironment } from '../support/context.ts'
import { needsProgram, recordRun } from './forms.ts'
import { checkOutput } from './outputs.ts'
import { runScripted } from './run-here.ts'
import type { Preview, Shown } from './shown.ts'

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What a command prints for scripts, and for people. */
export interface Both<Value> {
  readonly value: Value
  readonly text: string
}

/**
 * `billing-cli` on the test database, as a script would run it: without a terminal. In each test file the first command of each group
 * that ends with a result, and whatever has something on standard input, is run by `bin/billing-cli` itself; all others in this process.
 */
export interface Cli {
  readonly env: Readonly<Record<string, string>>
  run(words: readonly string[], options?: { readonly stdin?: string }): Promise<Ran>
  /** Runs with `--json`: exit code 0, or the one given, and exactly one JSON value on standard output, which is returned. */
  json<First extends string, Second extends string>(
    words: readonly [First, Second, ...string[]],
    options?: JsonOptions,
  ): Promise<Shown<First, Second>>
  json<First extends string>(words: readonly [First], options?: JsonOptions): Promise<Shown<First>>
  json(words: readonly string[], options?: JsonOptions): Promise<unknown>
  /** Runs as for people: exit code 0, nothing wider than 80 columns, no escape codes. */
  table(words: readonly string[]): Promise<string>
  /** Runs it both ways. */
  both<First extends string, Second extends string>(
    words: readonly [First, Second, ...string[]],
  ): Promise<Both<Shown<First, Second>>>
  both<First extends string>(words: readonly [First]): Promise<Both<Shown<First>>>
  both(words: readonly string[]): Promise<Both<unknown>>
  /** Runs it with `--dry-run --json`. */
  preview(words: readonly string[]): Promise<Preview>
  /** Exit code 1 and one line on standard error, which is returned; nothing on standard output. */
  refused(words: readonly string[]): Promise<string>
  /** Exit code 2 and a message on standard error, which is returned; nothing on standard output. */
  misused(words: readonly string[]): Promise<string>
  /** Each line fails with its exit code and a message that contains the part. */
  expectErrors(...lines: readonly (readonly [code: 1 | 2, words: readonly string[], part: string])[]): Promise<void>
}

interface JsonOptions {
  readonly code?: number
  readonly stdin?: string
}

export const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'billing-cli')
const ESCAPE = '\u001b'

interface CliOptions {
  /** Runs every command by `bin/billing-cli`, for tests of its process. */
  readonly program?: boolean
}

/** Must be called inside a test or a hook; `settings` are environment variables. */
export function openCli(settings: Readonly<Record<string, string>> = {}, { program = false }: CliOptions = {}): Cli {
  const env = {
    PATH: process.env['PATH'] ?? '',
    TZ: process.env['TZ'] ?? '',
    ...testEnvironment({ BILLING_RELAY_ADDRESS: 'bank+{code}@pay.example.com', ...settings }),
  }
  const run: Cli['run'] = async (words, options) => {
    const isProgram = program || options?.stdin !== undefined || needsProgram(words)
    const ran = await (isProgram ? runProgram(words, env, options?.stdin) : runScripted(words, env))
    recordRun(words, ran, isProgram)
    // What completes words is silent, so that the shell's line stays as it is.
    if (ran.code === 1 && words[0] !== 'complete')
      expect(ran.stderr, `${words.join(' ')}: why it failed`).not.to.equal('')
    checkOutput(words, ran)
    return ran
  }
  const json = async (words: readonly string[], { code = 0, ...options }: JsonOptions = {}): Promise<never> => {
    const ran = await run([...words, '--json'], options)
    expect(ran.code, `${words.join(' ')}: ${ran.stderr}`).to.equal(code)
    return JSON.parse(ran.stdout) as never
  }
  const table: Cli['table'] = async (words) => {
    const ran = await run(words)
    expect(ran.code, `${words.join(' ')}: ${ran.stderr}`).to.equal(0)
    expectFit(ran.stdout)
    return ran.stdout
  }
  const failed = async (words: readonly string[], code: number) => {
    const ran = await run(words)
    expect(ran.code, `${words.join(' ')}: ${ran.stdout}${ran.stderr}`).to.equal(code)
    expect(ran.stdout, words.join(' ')).to.equal('')
    return ran.stderr
  }
  const both = async (words: readonly string[]): Promise<Both<never>> => ({
    value: await json(words),
    text: await table(words),
  })
  const cli: Cli = {
    env,
    run,
    json,
    table,
    both,
    preview: (words) => json([...words, '--dry-run']),
    refused: async (words) => {
      const message = await failed(words, 1)
      expect(message, words.join(' ')).to.match(/^error: [^\n]+\n$/)
      return message
    },
    misused: async (words) => {
      const message = await failed(words, 2)
      expect(message, words.join(' ')).to.match(/^error: /)
      return message
    },
    expectErrors: async (...lines) => {
      for (const [code, words, part] of lines) {
        const message = code === 2 ? await cli.misused(words) : await cli.refused(words)
        expect(message, words.join(' ')).to.include(part)
      }
    },
  }
  return cli
}

/** What a command with `--json` that fails says on standard error. */
export const errorIn = ({ stderr }: Ran): { code: string; message: string } =>
  (JSON.parse(stderr) as { error: { code: string; message: string } }).error

/** Fails when a line other than a link is wider than 80 columns, a timestamp is broken, or an escape code would control the terminal. */
export function expectFit(shown: string): void {
  expect(shown).not.to.include(ESCAPE)
  expectWholeTimestamps(shown)
  const lines = shown.split('\n').filter((line) => !/^https?:\/\/\S+$/.test(line))
  for (const line of lines) expect(line.length, line).to.be.at.most(80)
}

/** Fails when a cell begins with the time of day or UTC and the cell above it ends with the date. */
export function expectWholeTimestamps(shown: string): void {
  const lines = shown.split('\n')
  for (const [row, line] of lines.entries()) {
    for (const { index } of line.matchAll(/(?<=^| {2})(?:\d\d:\d\d|UTC)\b/g)) {
      const [above] = (lines[row - 1] ?? '').slice(index).split('  ')
      expect(above, shown).not.to.match(/\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?$/)
    }
  }
}

async function runProgram(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin: string | undefined,
): Promise<Ran> {
  const child = spawn(PROGRAM, words, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const { promise: exited, resolve } = Promise.withResolvers<number | null>()
  child.on('close', resolve)
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin ?? '')
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { code, stdout, stderr }
}
