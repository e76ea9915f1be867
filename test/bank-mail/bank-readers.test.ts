import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isNoticeSubject, normalizeText, readDong, readText } from '#bank-mail/banks/reader.ts'
import { BANK_READERS, bankReaderOf } from '#bank-mail/banks/readers.ts'
import { htmlToText } from '#bank-mail/html-text.ts'
import { findBank } from '#bank-accounts/banks.ts'
import { BANK_MAILS, TRANSFER, type MailBank } from '../support/bank-mails.ts'

const textOf = (bank: MailBank, body: string): string =>
  normalizeText(BANK_MAILS[bank].type === 'text/html' ? htmlToText(body) : body)

const readingOf = (bank: MailBank, text: string) => readText(bankReaderOf(bank)!, normalizeText(text))

const creditOf = (bank: MailBank, text: string) => {
  const { notice } = readingOf(bank, text)
  return notice?.kind === 'credit' ? notice.credit : null
}

const creditIn = (bank: MailBank, body: string) => creditOf(bank, textOf(bank, body))

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
    expect(bankReaderOf('TIMO')!.bins).to.include(findBank('BVBank')!.bin)
  })

  for (const bank of Object.keys(BANK_MAILS) as MailBank[]) {
    describe(bank, () => {
      const body = BANK_MAILS[bank].body(TRANSFER)

      it('reports money that came in', () => {
        const credit = creditIn(bank, body)
        expect(credit).to.include({ amount: TRANSFER.amount, account: bank === 'TIMO' ? null : TRANSFER.account })
        expect(credit!.content).to.contain(TRANSFER.content)
        expect(credit!.bookedAt).to.be.instanceOf(Date)
      })

      it('reports no money for what went out, and is understood', () => {
        const { notice } = readingOf(bank, textOf(bank, BANK_MAILS[bank].body(TRANSFER, '-')))
        expect(notice).to.deep.equal({ kind: 'debit' })
      })

      it('gives two movements two references, and one movement the same reference again', () => {
        const other = BANK_MAILS[bank].body({ ...TRANSFER, movement: TRANSFER.movement + 1 })
        expect(creditIn(bank, body)!.reference).to.equal(creditIn(bank, body)!.reference)
        expect(creditIn(bank, body)!.reference).not.to.equal(creditIn(bank, other)!.reference)
      })

      it('is not read from a mail of another bank', () => {
        for (const other of Object.keys(BANK_MAILS) as MailBank[]) {
          if (other !== bank) expect(creditIn(bank, BANK_MAILS[other].body(TRANSFER))).to.equal(null)
        }
      })

      it('is not read if the amount is written as this bank never writes it', () => {
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
    expect(creditOf('TIMO', text)).to.deep.include({
      amount: 165_000,
      content: 'PNHN1234',
      bookedAt: new Date('2026-05-31T06:25:00Z'),
    })
    expect(readingOf('TIMO', text.replace('credited', 'debited')).notice).to.deep.equal({ kind: 'debit' })
    expect(creditOf('TIMO', text.replace('165,000', '165.000'))).to.equal(null)
  })

  /** The beginnings of real mails, names changed. */
  const GREETINGS: Readonly<Record<MailBank, readonly string[]>> = {
    ACB: ['', 'Kính gửi Quý khách hàng.', 'Kính gửi Quý khách,'],
    TIMO: ['', 'NGUYỄN VĂN A thân mến,', 'Hi Nguyen Van A,'],
    CAKE: [
      '',
      'Thông tin tài khoản',
      'Chào Nguyễn Văn A Cake xin thông báo tài khoản của bạn vừa mới phát sinh giao dịch như sau: Thông tin tài khoản',
    ],
    MB: [
      '',
      'Cảm ơn Quý khách đã sử dụng dịch vụ MB eBanking. MB xin thông báo giao dịch của Quý khách đã được thực hiện như sau:',
    ],
  }
  /** What a ticket system, an answer or a quotation puts there. */
  const OTHER_BEGINNINGS = [
    'Ticket 17:',
    'Cảm ơn bạn đã liên hệ,',
    'Thân gửi Nguyễn Văn A, bạn đã viết:',
    '>',
    'Kính gửi Quý khách hàng. Khách hàng viết:',
    'Hi Nguyen Van A, you wrote:',
    `Hi ${'a'.repeat(400)},`,
  ]
  for (const bank of Object.keys(GREETINGS) as MailBank[]) {
    const text = textOf(bank, BANK_MAILS[bank].body(TRANSFER))
    const bare = text.slice(text.search(bankReaderOf(bank)!.opening))

    it(`know how mails of ${bank} begin`, () => {
      for (const greeting of GREETINGS[bank]) {
        const reading = readingOf(bank, `${greeting} ${bare}`)
        expect(reading.isFromItsBeginning, greeting).to.equal(true)
        expect(reading.notice?.kind, greeting).to.equal('credit')
      }
      for (const beginning of OTHER_BEGINNINGS)
        expect(readingOf(bank, `${beginning} ${bare}`).isFromItsBeginning, beginning).to.equal(false)
    })

    it(`know the subjects of ${bank}, whatever mark, accents or case`, () => {
      const { subject } = BANK_MAILS[bank]
      const isKnown = (words: string) => isNoticeSubject(bankReaderOf(bank)!, words)
      const plain = subject.normalize('NFD').replace(/\p{M}/gu, '')
      for (const words of [
        subject,
        `${subject} 27550951`,
        `[seen] ${subject}`,
        `[a][b] ${subject}`,
        plain,
        subject.toUpperCase(),
      ])
        expect(isKnown(words), words).to.equal(true)
      for (const words of ['', 'Re: x', `Re: ${subject}`, `Ticket ${subject}`, `[${subject}`, `[a] b ${subject}`])
        expect(isKnown(words), words).to.equal(false)
    })
  }

  it('read Timo’s English mails that say of money that it went out', () => {
    const text =
      'Hi Nguyen Van A, Your Spend Account has been debited 37,000 VND on 02/06/2026 08:39. Your Current Balance is: 573,193 VND. Transaction Description: 7Eleven.'
    expect(readingOf('TIMO', text)).to.deep.equal({ notice: { kind: 'debit' }, isFromItsBeginning: true })
  })

  it('read CAKE’s mails that say of money that it went out, which name the other account first', () => {
    const text =
      'Tài khoản chuyển 0099887766 - Tài khoản thanh toán Tài khoản nhận PMC26031 Tên người nhận CUA HANG Số tiền -65.000 đ Phí giao dịch 0 đ Nội dung giao dịch Chuyen khoan'
    expect(readingOf('CAKE', text)).to.deep.equal({ notice: { kind: 'debit' }, isFromItsBeginning: true })
  })
})
