import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Command } from 'commander'
import { after, before, it, type Context } from 'mocha'
import { createProgram } from '#cli/program.ts'

/** The first words of the commands that each test file runs, as JSON and as a table. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'apps.test.ts': ['app', 'method', 'bank-account'],
  'selling.test.ts': ['plan', 'price', 'customer', 'subscription'],
  'promotions.test.ts': ['promotion'],
  'payments.test.ts': [
    'bank-mail',
    'payment',
    'transaction',
    'ledger',
    'webhook',
    'reminders',
    'receipts',
    'mail',
    'reconcile',
    'realtime',
  ],
  'service.test.ts': ['migrate', 'audit', 'key', 'stats', 'doctor', 'service', 'notification'],
  'backups.test.ts': ['backup', 'upgrade'],
  'operators.test.ts': ['operator', 'as', 'approval'],
  'find.test.ts': ['find', 'open'],
  'developer.test.ts': ['listen', 'trigger', 'request'],
  'demo.test.ts': ['demo'],
  'watch.test.ts': ['watch'],
  'review.test.ts': ['review'],
  'alerts.test.ts': ['alert'],
  'docs.test.ts': ['docs'],
  'completion.test.ts': ['completion'],
}

type Form = 'json' | 'table'
const runs: Record<Form, string[][]> = { json: [], table: [] }
/** The groups of the current file of which `bin/billing-cli` itself has run no command yet. */
const withoutProgram = new Set<string>()

/** Whether `bin/billing-cli` itself must run these words, because it has run none of their group in this file. */
export function needsProgram([word = '']: readonly string[]): boolean {
  return withoutProgram.has(word)
}

/** Records a run that printed a result: exactly one JSON value, or text for people. */
export function recordRun(
  words: readonly string[],
  ran: { readonly code: number | null; readonly stdout: string },
  isProgram: boolean,
): void {
  // doctor and ledger verify exit 1 with a result.
  if (ran.stdout === '' || (ran.code !== 0 && ran.code !== 1)) return
  if (isProgram) withoutProgram.delete(words[0] ?? '')
  if (!words.includes('--json')) runs.table.push([...words])
  else if (isJson(ran.stdout)) runs.json.push([...words])
}

interface Leaf {
  readonly path: readonly string[]
  readonly command: Command
}

/** Every command of a tree that has no subcommands. */
export function leavesOf(command: Command, path: readonly string[] = []): Leaf[] {
  return command.commands.length === 0
    ? [{ path, command }]
    : command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]))
}

/** The last test of a file, in its only `describe`: fails when the tests above left out a command of the file's groups, or a form. */
export function itRunsEveryForm(file: string): void {
  before(() => {
    runs.json = []
    runs.table = []
    for (const word of GROUPS[file] ?? []) withoutProgram.add(word)
  })
  after(() => withoutProgram.clear())

  it('runs each of these commands, as JSON and as a table, and one of each group by bin/billing-cli itself', async function () {
    if (!othersPassed(this)) this.skip()
    expect([...withoutProgram], 'groups of which bin/billing-cli ran no command').to.deep.equal([])
    const own = leavesOf(await createProgram()).filter(({ path }) => GROUPS[file]?.includes(path[0] ?? ''))
    expect(own).not.to.deep.equal([])
    const missing = own.flatMap(({ path }) =>
      (['json', 'table'] as const)
        .filter((form) => !runs[form].some((words) => path.every((word, index) => words[index] === word)))
        .map((form) => `${path.join(' ')} (${form})`),
    )
    expect(missing).to.deep.equal([])
  })
}

/** Fails when a command belongs to no file, or a file has no such last test. */
export async function expectEveryCommandTested(): Promise<void> {
  const program = await createProgram()
  expect(program.commands.map((child) => child.name())).to.have.members(Object.values(GROUPS).flat())
  for (const file of Object.keys(GROUPS))
    expect(readFileSync(join(import.meta.dirname, file), 'utf8'), file).to.include(`  itRunsEveryForm('${file}')\n})\n`)
}

/** Whether the other tests of a test's `describe` have run and passed: only then can it judge which commands ran. */
export function othersPassed({ test }: Context): boolean {
  return test?.parent?.tests.every((other) => other === test || other.state === 'passed') ?? false
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The words of an example as a shell splits them, up to a redirection. */
export function wordsOf(example: string): string[] {
  const [own = ''] = example.split(' > ')
  return [...own.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}
