import { expect } from 'chai'
import { describe, it } from 'mocha'
import { normalizeText, readDong } from '#providers/bank-mail/banks/reader.ts'
import { BANK_READERS, readerOf } from '#providers/bank-mail/banks/readers.ts'
import { htmlToText } from '#providers/bank-mail/html-text.ts'
import { findBank } from '#providers/bank-transfer/banks.ts'
import { BANK_MAILS, TRANSFER } from '../../support/bank-mails.ts'
import type { MailBank } from '../../support/bank-mails.ts'

const textOf = (bank: MailBank, body: string): string =>
  normalizeText(BANK_MAILS[bank].type === 'text/html' ? htmlToText(body) : body)

const creditIn = (bank: MailBank, body: string) => readerOf(bank)!.readCredit(textOf(bank, body))

describe('amounts in bank mails', () => {
  const GROUPED: [string, ',' | '.', 'none' | 'zeros', number | null][] = [
    ['10,000.00', ',', 'zeros', 10_000],
    ['14,000,000.00', ',', 'zeros', 14_000_000],
    ['5,000', ',', 'zeros', 5000],
    ['999', ',', 'zeros', 999],
    ['2.570.000', '.', 'none', 2_570_000],
    ['1.234.567,00', '.', 'zeros', 1_234_567],
    ['165,000', ',', 'none', 165_000],
    ['10.000', ',', 'zeros', null],
    ['10,000.50', ',', 'zeros', null],
    ['10,000.00', ',', 'none', null],
    ['1.23.456', '.', 'none', null],
    ['1234', '.', 'none', null],
    ['1.2345', '.', 'none', null],
    ['1,000.000', ',', 'zeros', null],
    ['0', '.', 'none', null],
    ['0.100', '.', 'none', null],
    ['-1.000', '.', 'none', null],
    ['', '.', 'none', null],
    ['９.000', '.', 'none', null],
    ['9.007.199.254.740.991', '.', 'none', Number.MAX_SAFE_INTEGER],
    ['9.007.199.254.740.992', '.', 'none', null],
  ]
  for (const [text, group, decimals, amount] of GROUPED) {
    it(`read "${text}" with "${group}" between groups${decimals === 'zeros' ? ' and decimals' : ''} as ${amount}`, () => {
      expect(readDong(text, group, decimals)).to.equal(amount)
    })
  }
})

describe('the text of bank mails', () => {
  it('is one line of composed letters, plain blanks and nothing invisible', () => {
    expect(normalizeText(' So\u0302\u0301 *du*\u00a0\u200b\r\n\thien\u00ad tai\ufeff ')).to.equal('Số du hien tai')
  })

  it('is what a reader of the HTML sees', () => {
    const html =
      '<head><title>x</title></head><style>p{}</style><p>S&#7889; ti&#7873;n: <b>+1</b>49.000&nbsp;&#273;</p><div style="display: none">+9</div><script>+8</script><td>a</td><td>b</td>'
    expect(normalizeText(htmlToText(html))).to.equal('Số tiền: +149.000 đ a b')
  })
})

describe('banks whose mails are read', () => {
  it('are ACB, Timo, CAKE and MB, under the codes and BINs of the VietQR list', () => {
    expect(BANK_READERS.map(({ code }) => code)).to.have.members(['ACB', 'TIMO', 'CAKE', 'MB'])
    for (const { code, bins } of BANK_READERS) expect(bins).to.include(findBank(code)!.bin)
  })

  it('include accounts that Timo’s customers have under BVBank’s BIN', () => {
    expect(readerOf('TIMO')!.bins).to.include(findBank('BVBank')!.bin)
  })

  for (const bank of Object.keys(BANK_MAILS) as MailBank[]) {
    describe(bank, () => {
      const body = BANK_MAILS[bank].body(TRANSFER)

      it('tells of money that came in', () => {
        const credit = creditIn(bank, body)
        expect(credit).to.include({ amount: TRANSFER.amount, account: bank === 'TIMO' ? null : TRANSFER.account })
        expect(credit!.content).to.contain(TRANSFER.content)
        expect(credit!.bookedAt).to.be.instanceOf(Date)
      })

      it('does not tell of money that went out', () => {
        expect(creditIn(bank, BANK_MAILS[bank].body(TRANSFER, '-'))).to.equal(null)
      })

      it('tells two movements apart, and one from itself never', () => {
        const other = BANK_MAILS[bank].body({ ...TRANSFER, movement: TRANSFER.movement + 1 })
        expect(creditIn(bank, body)!.reference).to.equal(creditIn(bank, body)!.reference)
        expect(creditIn(bank, body)!.reference).not.to.equal(creditIn(bank, other)!.reference)
      })

      it('is not read from a mail of another bank', () => {
        for (const other of Object.keys(BANK_MAILS) as MailBank[]) {
          if (other !== bank) expect(creditIn(bank, BANK_MAILS[other].body(TRANSFER))).to.equal(null)
        }
      })

      it('is not read where the amount is written as this bank never writes it', () => {
        const [own] = /99[.,]000(\.00)?/.exec(body)!
        for (const wrong of ['99000', '9.90.00', '99,000.50', '99 000', '0']) {
          expect(creditIn(bank, body.replaceAll(own, wrong)), wrong).to.equal(null)
        }
      })
    })
  }

  it('read ACB’s older references, which say less of their time', () => {
    const body = BANK_MAILS.ACB.body(TRANSFER).replaceAll(/GD \S+ \S+:37:09/g, 'GD 082170-011524 13:36:03')
    expect(creditIn('ACB', body)).to.deep.include({ reference: '082170-011524 13:36:03', bookedAt: null })
  })

  it('read ACB’s mails without the English half', () => {
    const [vietnamese = ''] = BANK_MAILS.ACB.body(TRANSFER).split('-----')
    expect(creditIn('ACB', vietnamese)).to.deep.include({ amount: 99_000, bookedAt: new Date('2026-09-13T06:37:09Z') })
  })

  it('do not read ACB’s mails whose halves disagree', () => {
    const body = BANK_MAILS.ACB.body(TRANSFER)
    expect(creditIn('ACB', body.replace('Credit +99,000.00', 'Credit +98,000.00'))).to.equal(null)
    expect(creditIn('ACB', body.replace('Credit +', 'Debit -'))).to.equal(null)
    expect(creditIn('ACB', body.replace('your 27550951', 'your 27550952'))).to.equal(null)
  })

  it('read Timo’s English mails, which write amounts the other way', () => {
    const text =
      'Your Spend Account has been credited 165,000 VND on 31/05/2026 13:25. Your current balance is: 610,000 VND. Transaction Description: PNHN1234'
    expect(readerOf('TIMO')!.readCredit(text)).to.deep.include({
      amount: 165_000,
      content: 'PNHN1234',
      bookedAt: new Date('2026-05-31T06:25:00Z'),
    })
    expect(readerOf('TIMO')!.readCredit(text.replace('credited', 'debited'))).to.equal(null)
    expect(readerOf('TIMO')!.readCredit(text.replace('165,000', '165.000'))).to.equal(null)
  })
})
