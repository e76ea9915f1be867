import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { parse } from 'shell-quote'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { assignTransferCode } from '#providers/bank-transfer/store.ts'
import { asRealTime, asAppTime, parseTimestamp } from '#shared/time.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext } from '../support/context.ts'
import { openDocPage } from '../support/doc-page.ts'
import { aCheckout, aCustomer, anApp, aPlan, paid, priceId } from '../support/factories.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { aBankMail } from './states.ts'

const page = openDocPage('docs/support.md')
const ROWS = [...page.text.matchAll(/^\| [^|]+ \| (`find .+) \|$/gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`(find [^`]+)`/g)].map(([, line = '']) => line),
)
const BLOCKS = [...page.text.matchAll(/^billing-cli (.+)$/gm)].map(([, line = '']) => line)

describe('docs/support.md', () => {
  let cli: Cli
  /** What an example names, and what has this name in the test. */
  let names: readonly (readonly [example: string, actual: string])[]
  let step: { readonly what: string; readonly command: string }

  /** Lan opened a checkout and transferred its amount without the note; `user-42` has paid. */
  beforeEach(async () => {
    const ctx: Context = realTimeContext()
    cli = openCli()
    const seller = await anApp(ctx, { name: 'Reader' })
    const plan = await aPlan(ctx, seller)
    const lan = await aCustomer(ctx, seller, { name: 'Nguyễn Thị Lan', email: 'an@example.com' })
    const bought = { price_id: priceId(plan), customer_id: `cus_${lan.id}` }
    const { transaction_id: id } = await aCheckout(ctx, seller, { ...bought, external_ref: 'user-lan' })
    await paid(ctx, seller, { ...bought, external_ref: 'user-42' })
    const { renewalToken } = await getSubscription(ctx.db, seller.app.id, 'user-42')
    await inTransaction(ctx, (tx) => assignTransferCode(tx, id!, 'PG7KD4MXQT'))
    await ctx.db.update(transactions, { id: id! }, { createdAt: asAppTime(parseTimestamp('2026-10-28 06:58:00')!) })
    const account = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '0123456789', holder: 'CONG TY A' })
    await assignBankAccount(ctx, 'linh', seller.app, account.id)
    const mail = await aBankMail(ctx, {
      ...{ bank: 'ACB', bankReference: 'FT26301123456', amount: 99_000, review: 'credit' },
      ...{ bankAccountId: account.id, receivedAt: asRealTime(new Date('2026-10-28T07:07:00Z')) },
    })
    const [event] = await cli.json(['webhook', 'list', String(seller.app.id)])
    names = [
      ['https://pay.example.com/renew/0f…', `https://pay.example.com/renew/${renewalToken}`],
      ['evt_1', event!.id],
      ['find 17', `find ${id!}`],
      ['transaction show 1', `transaction show ${id!}`],
      ['webhook list 1', `webhook list ${seller.app.id}`],
    ]
    step = {
      what: `₫99,000 of 28 Oct fits transaction ${id!} (user-lan, pending)`,
      command: `billing-cli bank-mail match ${mail} ${id!} --note "…"`,
    }
  })

  const wordsOf = (line: string): string[] =>
    parse(names.reduce((text, [example, actual]) => text.replace(example, actual), line)).map(String)

  it('has an example for each thing that a message contains, and each finds it', async () => {
    expect(ROWS.length).to.be.at.least(10)
    for (const line of ROWS) {
      const { matches } = (await cli.json(wordsOf(line))) as Shown<'find'>
      expect(matches, line).not.to.deep.equal([])
    }
  })

  it('has no command that does not run', async () => {
    expect(BLOCKS.length).to.be.at.least(10)
    for (const line of BLOCKS.filter((one) => !/^(doctor|bank-mail match)/.test(one))) {
      const { code, stderr } = await cli.run(wordsOf(line))
      expect(code, `${line}: ${stderr}`).to.equal(0)
    }
  })

  it('leads by amount and date to the whole command that books the money, which runs as it is printed', async () => {
    const found = (await cli.json(wordsOf('find 99k --on 28/10/2026'))) as Shown<'find'>
    const { next_steps: steps, end_users: people } = found
    const all = [...steps, ...people.flatMap((person) => person.next_steps)]
    expect(all).to.deep.include(step)
    const shown = page
      .block('An amount and a date', 'text')
      .replace(/transaction 1/, step.what.match(/transaction \d+/)![0])
    expect(shown).to.include(step.what)
    // As it is printed, and where nobody can be asked.
    const { code, stderr } = await cli.run(wordsOf(step.command).slice(1))
    expect(code, stderr).to.equal(0)
    const [person] = (await cli.json(['find', 'user-lan'])).end_users
    expect(person!.subscription).to.include({ status: 'active' })
  })
})
