import { countOf, DEBIT, fingerprint, PERSON, readDong, vietnamTime, type BankReader } from './reader.ts'

/**
 * "Thông báo thay đổi số dư tài khoản" and "Credit Transaction Notice" of Timo, which belongs to BVBank. Vietnamese mails write
 * `2.570.000`, English ones `165,000`. They name neither account nor movement, so a movement is identified by its time, the balance after
 * it and its text.
 */
export const timo: BankReader = {
  code: 'TIMO',
  domains: ['timo.vn'],
  bins: ['963388', '970454'],
  namesAccount: false,
  senders: ['support@timo.vn'],
  subjects: ['Thông báo thay đổi số dư tài khoản', 'Credit Transaction Notice', 'Debit Transaction Notice'],
  // Text parts that a program made from the HTML may still have entities: `th&acirc;n m&#7871;n`.
  greeting: new RegExp(`^(?:${PERSON} th\\S{1,9}n m\\S{1,9}n, |(?:Hi|Hello|Dear) ${PERSON}[,!] )?$`, 'iu'),
  opening: /Tài khoản .{1,60}? vừa (?:tăng|giảm) |Your .{1,60}? has been (?:credited|debited) /u,
  creditWords: /vừa tăng|has been credited/u,
  readNotice(text) {
    const template = text.startsWith('Your ') ? ENGLISH : VIETNAMESE
    const match = template.credited.exec(text)
    if (!match) return template.debited.test(text) && !text.includes(template.labels[0]) ? DEBIT : null
    if (template.labels.some((label) => countOf(text, label) !== 1)) return null
    const [, amountText = '', day = '', month = '', year = '', time = '', balance = '', content = ''] = match
    const amount = readDong(amountText, template.group)
    if (amount === null) return null
    const reference = fingerprint([amountText, year, month, day, time, balance], content)
    const bookedAt = vietnamTime(year, month, day, `${time}:00`)
    return { kind: 'credit', credit: { amount, account: null, reference, bookedAt, content } }
  },
}

const VIETNAMESE = {
  group: '.',
  credited:
    /^Tài khoản .{1,60}? vừa tăng ([\d.,]+) ?VND vào (\d{2})\/(\d{2})\/(\d{4}) (\d{2}:\d{2})\. Số dư hiện tại ?: ?([\d.,]+) ?VND\. Mô tả ?: ?(.+)$/u,
  debited: /^Tài khoản .{1,60}? vừa giảm \d/u,
  labels: ['vừa tăng', 'Số dư hiện tại', 'Mô tả'],
} as const

const ENGLISH = {
  group: ',',
  credited:
    /^Your .{1,60}? has been credited ([\d.,]+) ?VND on (\d{2})\/(\d{2})\/(\d{4}) (\d{2}:\d{2})\. Your current balance is ?: ?([\d.,]+) ?VND\. Transaction Description ?: ?(.+)$/u,
  debited: /^Your .{1,60}? has been debited \d/u,
  labels: ['has been credited', 'Your current balance', 'Transaction Description'],
} as const
