import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  relayAnswerOf,
  mailRefusalOf,
  transferCodeOf,
  type AccountFacts,
  type MailFacts,
  type PayableFacts,
} from '#bank-mail/mail-answer.ts'

const ACCOUNT: AccountFacts = { number: '27550951', isOfMailsBank: true, hasMailbox: true, isRecipient: true }
const PAYABLE: PayableFacts = { currency: 'VND', isBankPageOpened: true, account: ACCOUNT, isAboutFormerAccount: false }
const MAIL: MailFacts = { bank: 'ACB', isTrusted: true, credit: { account: '27550951', codes: ['PG23456789'] } }

const withAccount = (changes: Partial<AccountFacts>): PayableFacts => ({
  ...PAYABLE,
  account: { ...ACCOUNT, ...changes },
})
const withCredit = (changes: Partial<NonNullable<MailFacts['credit']>>): MailFacts => ({
  ...MAIL,
  credit: { ...MAIL.credit!, ...changes },
})

describe('what becomes of a bank mail', () => {
  it('is that its money is taken, when nothing speaks against it', () => {
    expect(mailRefusalOf(MAIL, PAYABLE)).to.equal(null)
    expect(mailRefusalOf(withCredit({ account: null }), PAYABLE)).to.equal(null)
  })

  const REFUSED: [string, string, string, MailFacts, PayableFacts | null][] = [
    ['no bank sent it', 'ignored', 'not_bank_email', { ...MAIL, bank: null }, PAYABLE],
    ['it is not shown to be the bank’s', 'rejected', 'untrusted_sender', { ...MAIL, isTrusted: false }, PAYABLE],
    ['it reports no money that came in', 'ignored', 'no_transfer_code', { ...MAIL, credit: null }, null],
    ['it has no transfer code', 'ignored', 'no_transfer_code', withCredit({ codes: [] }), null],
    ['it has two different transfer codes', 'ignored', 'no_transfer_code', withCredit({ codes: ['A', 'B'] }), PAYABLE],
    ['nobody has its transfer code', 'ignored', 'unknown_transaction', MAIL, null],
    [
      'the payment’s bank page was never opened',
      'ignored',
      'not_bank_transfer_transaction',
      MAIL,
      { ...PAYABLE, isBankPageOpened: false },
    ],
    [
      'the payment is in another currency',
      'ignored',
      'not_bank_transfer_transaction',
      MAIL,
      { ...PAYABLE, currency: 'USD' },
    ],
    [
      'the app has no account, or a disabled one',
      'ignored',
      'bank_account_unavailable',
      MAIL,
      { ...PAYABLE, account: null },
    ],
    [
      'the app’s account is at another bank',
      'ignored',
      'bank_account_unavailable',
      MAIL,
      withAccount({ isOfMailsBank: false }),
    ],
    ['it names another account', 'ignored', 'bank_account_unavailable', withCredit({ account: '1' }), PAYABLE],
    [
      'it names no account, and nobody knows which mailbox the bank writes to about the app’s',
      'ignored',
      'bank_account_unavailable',
      withCredit({ account: null }),
      withAccount({ hasMailbox: false }),
    ],
    ['it came to another address', 'rejected', 'invalid_recipient', MAIL, withAccount({ isRecipient: false })],
  ]
  for (const [what, status, reason, mail, payable] of REFUSED) {
    it(`is ${status}, ${reason}, when ${what}`, () => {
      expect(mailRefusalOf(mail, payable)).to.deep.equal({ status, reason })
    })
  }

  it('is rejected, invalid_recipient, when it is about an account that the app had before', () => {
    for (const account of [null, ACCOUNT, { ...ACCOUNT, isOfMailsBank: false }]) {
      const payable = { ...PAYABLE, account, isAboutFormerAccount: true }
      expect(mailRefusalOf(withCredit({ account: 'former' }), payable)).to.deep.equal({
        status: 'rejected',
        reason: 'invalid_recipient',
      })
    }
  })

  it('is asked in a fixed order: an earlier refusal hides every later one', () => {
    const steps = REFUSED.filter(([, , , , payable]) => payable !== null)
    for (const [index, [, , reason, mail, payable]] of steps.entries()) {
      for (const [, , , laterMail, laterPayable] of steps.slice(index + 1)) {
        const bothMail = { ...laterMail, ...changesOf(mail, MAIL) }
        const bothPayable = { ...laterPayable!, ...changesOf(payable!, PAYABLE) }
        expect(mailRefusalOf(bothMail, bothPayable)).to.have.property('reason', reason)
      }
    }
  })

  it('does not use the code of a mail that is not trusted', () => {
    expect(transferCodeOf({ ...MAIL, isTrusted: false })).to.equal(null)
    expect(transferCodeOf(MAIL)).to.equal('PG23456789')
  })

  it('is what became of the money, once it is booked', () => {
    expect(relayAnswerOf('processed', 'completed')).to.deep.equal({ status: 'processed' })
    expect(relayAnswerOf('underpaid', 'pending')).to.deep.equal({ status: 'underpaid' })
    expect(relayAnswerOf('duplicate', 'pending')).to.deep.equal({ status: 'duplicate' })
    expect(relayAnswerOf('duplicate', 'refunded')).to.deep.equal({ status: 'duplicate' })
    expect(relayAnswerOf('already_completed', 'completed')).to.deep.equal({ status: 'already_completed' })
  })

  for (const status of ['refunded', 'void']) {
    it(`is ignored, transaction_not_pending, when the payment is ${status}`, () => {
      expect(relayAnswerOf('already_completed', status)).to.deep.equal({
        status: 'ignored',
        reason: 'transaction_not_pending',
      })
    })
  }
})

/** The properties in which one object differs from the other. */
function changesOf<T extends object>(one: T, other: T): Partial<T> {
  const changed = Object.entries(one).filter(([key, value]) => other[key as keyof T] !== value)
  return Object.fromEntries(changed) as Partial<T>
}
