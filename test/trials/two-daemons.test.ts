import { expect } from 'chai'
import { describe, it } from 'mocha'
import { twoDaemons } from './two-daemons.ts'

describe('trial: two daemons on one database', () => {
  it('40 payments over both while 20 reminders are due: each webhook and each mail is sent once', async () => {
    const { mails, webhooks } = await twoDaemons({ payments: 40, reminders: 20, daemons: 2 })
    expect({ mails, webhooks }).to.deep.equal({ mails: 20, webhooks: 80 })
  })
})
