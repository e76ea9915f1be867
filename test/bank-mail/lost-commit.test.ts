import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { bankMails } from '#bank-mail/store.ts'
import { openLossyDatabase, strikeFirstCommit, type LossyDatabase } from '../db/lossy-server.ts'
import { genuineMail } from '../support/bank-mails.ts'
import { testDatabase } from '../support/database.ts'
import { aBankShop, transferFor, type BankShop } from './bank-shop.ts'

describe('a bank mail whose COMMIT is not answered', () => {
  let shop: BankShop
  let lossy: LossyDatabase

  beforeEach(async () => {
    shop = await aBankShop()
    lossy = await openLossyDatabase()
    Object.assign(shop.service.ctx, { db: lossy.db })
  })
  afterEach(async () => {
    Object.assign(shop.service.ctx, { db: testDatabase().db })
    await lossy.close()
    await shop.service.stop()
  })

  for (const fate of ['answer lost', 'lost'] as const) {
    it(`("${fate}") is answered with what it did, and is kept once`, async () => {
      const payment = await shop.pay()
      const mail = await genuineMail('ACB', transferFor(payment))
      strikeFirstCommit(lossy.line, fate)
      const answer = await shop.relay(mail)
      expect(answer.body).to.deep.equal({ status: 'processed' })
      const kept = await shop.service.ctx.db.all(bankMails, 'WHERE 1 = 1')
      expect(kept.map(({ status }) => status)).to.deep.equal(['processed'])
      expect((await shop.transaction(payment.id)).status).to.equal('completed')
      expect((await shop.relay(mail)).body, 'the relay posts it again').to.deep.equal({ status: 'duplicate' })
    })
  }
})
