import { countOf, fingerprint, readDong, vietnamTime } from './reader.ts'
import type { BankReader } from './reader.ts'

/**
 * "Thông báo thay đổi số dư tài khoản" and "Credit Transaction Notice" of Timo, a bank of BVBank's. Vietnamese mails write
 * `2.570.000`, English ones `165,000`. They name neither account nor movement, so that a movement is known by its time, the
 * balance after it and its text.
 */
export const timo: BankReader = {
  code: 'TIMO',
  domains: ['timo.vn'],
  bins: ['963388', '970454'],
  readCredit(text) {
    const found = TEMPLATES.map((template) => ({ template, match: template.pattern.exec(text) }))
    const [only, ...others] = found.filter(({ match }) => match !== null)
    if (!only?.match || others.length > 0) return null
    if (only.template.labels.some((label) => countOf(text, label) !== 1)) return null
    const [, amountText = '', day = '', month = '', year = '', time = '', balance = '', content = ''] = only.match
    const amount = readDong(amountText, only.template.group)
    if (amount === null) return null
    const reference = fingerprint([amountText, year, month, day, time, balance], content)
    return { amount, account: null, reference, bookedAt: vietnamTime(year, month, day, `${time}:00`), content }
  },
}

const TEMPLATES = [
  {
    group: '.',
    pattern:
      /Tài khoản .{1,60} vừa tăng ([\d.,]+) ?VND vào (\d{2})\/(\d{2})\/(\d{4}) (\d{2}:\d{2})\. Số dư hiện tại ?: ?([\d.,]+) ?VND\. Mô tả ?: ?(.+)$/u,
    labels: ['vừa tăng', 'Số dư hiện tại', 'Mô tả'],
  },
  {
    group: ',',
    pattern:
      /Your .{1,60} has been credited ([\d.,]+) ?VND on (\d{2})\/(\d{2})\/(\d{4}) (\d{2}:\d{2})\. Your current balance is ?: ?([\d.,]+) ?VND\. Transaction Description ?: ?(.+)$/u,
    labels: ['has been credited', 'Your current balance', 'Transaction Description'],
  },
] as const
