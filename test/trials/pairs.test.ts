import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { customers } from '#customers/store.ts'
import { COMMANDS, listPairs, type Pair, type PairCommand } from '../pairs/commands.ts'
import { caseNamed, everyPair, pairNames } from './pairs.ts'

const RUN = join(import.meta.dirname, 'run.ts')
const run = promisify(execFile)
const trials = (...args: string[]) => run(process.execPath, [RUN, ...args])

/** One of each kind. */
const SHORT = [
  'running: pay by a bank transfer + match a bank mail',
  'running: deliver an event + deliver an event again',
  'ended: sweep the ended periods + send the due reminders',
]

async function replay(name: string): Promise<void> {
  await everyPair({ seed: 41, mostOrders: 1, faults: 0, ...caseNamed(name) })
}

/** Fails as a fault in the rig would, in each order alike. */
const BROKEN: PairCommand = {
  scenes: ['first'],
  about: ['end user'],
  run: () => Promise.reject(new TypeError('it is not a function')),
}

/** Looks whether the customer is there and inserts it, without a lock. */
const CARELESS: PairCommand = {
  scenes: ['first'],
  about: ['end user'],
  run: (ctx: Context, { app }) =>
    inTransaction(ctx, async (tx) => {
      const known = await tx.count(customers, "WHERE email = 'careless@example.com'")
      if (known > 0) return 'known'
      await tx.run(
        `INSERT INTO customers (app_id, name, email, cc_emails, bcc_emails, locale, created_at, updated_at)
         VALUES (?, 'An', 'careless@example.com', '[]', '[]', 'en', ?, ?)`,
        [app.id, tx.now, tx.now],
      )
      return 'new'
    }),
}

describe('trial: two commands in every order of their writes', () => {
  it('a payment and an operator, two senders of an event, two sweeps: each order and each kill comes to what a serial order comes to', async () => {
    const pairs = SHORT.flatMap((name) => caseNamed(name).pairs)
    const figures = await everyPair({ seed: 41, pairs, mostOrders: 4, faults: 0.2 })
    expect(figures.kills).to.be.at.least(3)
    expect(figures.waits).to.be.at.least(1)
  })

  it('a command that fails in each order without a name for its error proves nothing', async () => {
    const commands = { broken: BROKEN }
    const pairs: Pair[] = [{ name: 'broken + broken', scene: 'first', commands: ['broken', 'broken'] }]
    const found = await everyPair({ seed: 41, commands, pairs, mostOrders: 1, faults: 0 }).catch(
      (error: unknown) => error,
    )
    expect(String(found)).to.equal('Error: 1 of 1 pairs: broken + broken: TypeError: it is not a function')
  })

  it('finds a command that looks and then inserts, without a lock', async () => {
    const commands = { careless: CARELESS }
    const pairs: Pair[] = [{ name: 'careless + careless', scene: 'first', commands: ['careless', 'careless'] }]
    const found = await everyPair({ seed: 41, commands, pairs, mostOrders: 8, faults: 0 }).catch(
      (error: unknown) => error,
    )
    expect(String(found)).to.match(
      /^Error: 1 of 1 pairs: careless \+ careless: no serial order comes to this; replay: --case/,
    )
  })

  it('failed events that another operator has replayed meanwhile are not replayed once more', () =>
    replay('running: deliver failed events again + deliver failed events again / B A A A A B B B'))

  it('an attempt is recorded once, also where the answer to COMMIT is lost', () =>
    replay('running: deliver an event + deliver an event again / A A A A A?'))

  it('a renewal is opened once, also where the answer to COMMIT is lost and the plan is switched meanwhile', () =>
    replay('running: switch the plan + renew by the link / B A B B B A B? B A A A A A B B B B B B B B B B B'))

  it('the end of a period is reported once, by a late payment or by the sweep', async () => {
    const { pairs } = caseNamed('ended: pay by a bank transfer + sweep the ended periods')
    expect(await everyPair({ seed: 41, pairs, mostOrders: 60, faults: 0 })).to.include({ everyOrder: 1 })
  })

  it('a refund at the provider is recorded, also while an operator moves its money', async () => {
    const { pairs } = caseNamed('running: move what was paid twice + a refund at the provider is reported')
    const figures = await everyPair({ seed: 41, pairs, mostOrders: 30, faults: 0.3 })
    expect(figures.waits).to.be.at.least(1)
  })

  it('names at least 250 pairs, each once, and every command', () => {
    const pairs = listPairs()
    expect(new Set(pairs.map(({ name }) => name)).size).to.equal(pairs.length)
    expect(pairs.length).to.be.at.least(250)
    expect(new Set(pairs.flatMap(({ commands }) => commands)).size).to.equal(Object.keys(COMMANDS).length)
  })

  it('lists its cases, and refuses one that it does not have', async () => {
    expect((await trials('pairs', '--list')).stdout.trimEnd().split('\n')).to.deep.equal(pairNames())
    const refused = (await trials('pairs', '--case', 'no + such').catch((error: unknown) => error)) as {
      code: number
      stderr: string
    }
    expect(refused.code).to.equal(1)
    expect(refused.stderr).to.equal('no such case: no + such; npm run trials pairs -- --list shows them\n')
  })
})
