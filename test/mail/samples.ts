import type { MailTemplate, MailValues } from '#mail/render.ts'
import { mailBrand } from '#mails/compose-mail.ts'
import { LOCALES, type Locale } from '#shared/locale.ts'

/** A mail of each kind in each language, with values of the length that real ones have. */
export interface SampleMail {
  readonly name: string
  readonly template: MailTemplate
  readonly locale: Locale
  readonly values: MailValues
}

const RENEW_URL = `http://127.0.0.1:8080/renew/${'3f9a'.repeat(16)}`
export const REMINDER = {
  ...mailBrand({ pageSettings: null }, 'en', 'http://127.0.0.1:8080'),
  stage: 3,
  is_test: false,
  in_trial: false,
  app_name: 'Sách & Trà <shop>',
  customer_name: 'Nguyễn Văn An',
  plan_name: 'Premium "Gold" dành cho gia đình',
  plan_title: 'Premium "Gold" dành cho gia đình',
  interval: '1 month',
  amount: '₫99,000',
  period_end: '31 March 2026, 10:05 UTC',
  period_end_day: '31 March 2026',
  renew_url: `${RENEW_URL}?a=1&b=2`,
  opt_out_url: `${RENEW_URL}/opt-out`,
} satisfies MailValues

const RECEIPT = {
  ...mailBrand({ pageSettings: null }, 'en', 'http://127.0.0.1:8080'),
  is_test: false,
  app_name: REMINDER.app_name,
  customer_name: REMINDER.customer_name,
  title: REMINDER.plan_name,
  paid_for: REMINDER.plan_name,
  amount: '₫60,000',
  asked: '₫99,000',
  discount: '',
  missing: '',
  pay_url: '',
  code: '',
  account_number: '',
  bank_name: '',
  account_holder: '',
  until: '',
  is_lifetime: false,
  date: '1 March 2026',
  reference: 'PGABCD2345',
} satisfies MailValues

const RECEIPTS = [
  { ...RECEIPT, kind: 'received', until: '31 March 2026', discount: '₫19,800 (TET2027)' },
  { ...RECEIPT, kind: 'part', missing: '₫39,000' },
  {
    ...RECEIPT,
    kind: 'part',
    missing: '₫39,000',
    pay_url: `http://127.0.0.1:8080/checkout/${'3f9a'.repeat(16)}/bank?a=1&b=2`,
    code: 'PGABCD2345',
    account_number: '0123456789012',
    bank_name: 'Vietcombank',
    account_holder: 'CONG TY SACH NOI',
  },
  { ...RECEIPT, kind: 'refunded' },
] satisfies readonly MailValues[]

/** Among the longest that `period_end` has. */
const ENDS = { en: '30 September 2026, 10:05 UTC', vi: '17:05 ngày 30/12/2026 (GMT+7)' } as const

export const SAMPLES: readonly SampleMail[] = LOCALES.flatMap((locale) => [
  ...(['renewal-reminder', 'expired-notice'] as const).flatMap((template) =>
    [false, true].map((in_trial) => ({
      name: `${template} of a ${in_trial ? 'trial' : 'paid period'} in ${locale}`,
      template,
      locale,
      values: { ...REMINDER, in_trial, period_end: ENDS[locale] },
    })),
  ),
  {
    name: `renewal-reminder without a name in ${locale}`,
    template: 'renewal-reminder',
    locale,
    values: { ...REMINDER, customer_name: '', period_end: ENDS[locale] },
  } as const,
  ...RECEIPTS.map((values) => ({
    name: `receipt (${values.kind}${values.code === '' ? '' : ' by transfer'}) in ${locale}`,
    template: 'receipt' as const,
    locale,
    values,
  })),
])
