import { expect } from 'chai'
import { describe, it } from 'mocha'
import { checkBooks } from './line-books.ts'
import { rows, type Work } from './line-load.ts'
import { programOf, wordsOf } from './line-program.ts'
import { lineFaults } from './line.ts'

/** A second event of one change, as a unit of work that is half repeated would write it. */
async function copyLastEvent(): Promise<{ insert: () => Promise<unknown>; remove: () => Promise<unknown> }> {
  const columns = await rows<{ Field: string }>('SHOW COLUMNS FROM events')
  const copied = columns.flatMap(({ Field: name }) => (name === 'id' ? [] : [name])).join(', ')
  const [last] = await rows<{ id: number }>(
    `SELECT MAX(id) AS id FROM events WHERE event_type = 'subscription.updated'`,
  )
  const [newest] = await rows<{ id: number }>('SELECT MAX(id) AS id FROM events')
  return {
    insert: () => rows(`INSERT INTO events (${copied}) SELECT ${copied} FROM events WHERE id = ?`, [last!.id]),
    remove: () => rows('DELETE FROM events WHERE id > ?', [newest!.id]),
  }
}

describe('trial: faults of the line', () => {
  it('one seed is one program: a longer one begins with the shorter one, and another seed has another', () => {
    const words = (seed: number, steps: number) => programOf(seed, steps).map(wordsOf)
    expect(words(1, 50)).to.deep.equal(words(1, 50))
    expect(words(1, 50).slice(0, 20)).to.deep.equal(words(1, 20))
    expect(words(1, 50)).not.to.deep.equal(words(2, 50))
  })

  it('the programs have every fault of every line', () => {
    const kinds = new Set(programOf(1, 3000).map((fault) => wordsOf(fault).replace(/\d+/g, 'n')))
    const texts = [...kinds].join('\n')
    for (const errno of [1205, 1213, 1317, 1461])
      expect(programOf(1, 3000).map(wordsOf).join('\n')).to.match(new RegExp(`database: error ${errno} instead`))
    expect(texts).to.include('(n)')
    expect(kinds.size, texts).to.equal(6 * 6 + 4 + 1 + 2 + 1)
  })

  it('nothing is lost, nothing comes twice and every answer is true; the books find a lost webhook, a double mail, a double refund, a wrong node, a double event and an answer that was not true', async () => {
    const found: string[] = []
    const printed: string[] = []
    const doctored = async (work: Work, doctor: () => unknown, undo: () => unknown): Promise<void> => {
      await doctor()
      found.push(await checkBooks(work).then(() => 'nothing', String))
      await undo()
    }
    const beforeCheck = async (work: Work): Promise<void> => {
      const { receiver, inbox, realtime, stripe } = work.rig
      // A receiver that acknowledges before it stores, and dies in between.
      const lost = receiver.received[0]!
      const kept = receiver.received.filter(({ eventId }) => eventId !== lost.eventId)
      const all = [...receiver.received]
      const receive = (those: typeof all) => receiver.received.splice(0, Infinity, ...those)
      await doctored(
        work,
        () => receive(kept),
        () => receive(all),
      )
      await doctored(
        work,
        () => inbox.mails.push(inbox.mails[0]!),
        () => inbox.mails.pop(),
      )
      const refund = { id: 're_double' } as (typeof stripe.refunds)[number]
      await doctored(
        work,
        () => stripe.refunds.push(refund),
        () => stripe.refunds.pop(),
      )
      const path = `users/${work.journal.paid.find(({ app }) => app === 'client')!.ref}/subscription`
      const node = await realtime.read(path)
      await doctored(
        work,
        () => realtime.write(path, { plan: 'free' }),
        () => realtime.write(path, node),
      )
      const copied = await copyLastEvent()
      await doctored(work, copied.insert, copied.remove)
      const { paid } = work.journal
      await doctored(
        work,
        () => paid.push(paid[0]!),
        () => paid.pop(),
      )
    }
    const figures = await lineFaults({ seed: 4, steps: 6, days: 1, print: (line) => printed.push(line), beforeCheck })
    expect(printed.slice(0, -1)).to.deep.equal(programOf(4, 6).map((fault, index) => `${index + 1}. ${wordsOf(fault)}`))
    expect(printed.at(-1)).to.match(/^nothing lost, nothing twice, every answer true: \d+ payments/)
    expect(figures.payments).to.be.at.least(12)
    expect(figures.struck).to.be.at.least(3)
    expect(found[0]).to.match(/1 of \d+ events never arrived/)
    expect(found[1]).to.match(/the mail .* arrived twice/)
    expect(found[2]).to.match(/and at Stripe .*re_double/)
    expect(found[3]).to.match(/and its node says/)
    expect(found[4]).to.match(/the ledger has discrepancies/)
    expect(found[5]).to.match(/\d+ completed transactions, not \d+/)
    expect(found).to.have.lengthOf(6)
  })
})
