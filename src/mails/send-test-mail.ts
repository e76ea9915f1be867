import { readerOf } from '#apps/page-settings.ts'
import type { Context } from '#context.ts'
import type { MailLocale } from '#mail/render.ts'
import { openMailer } from '#mail/send.ts'
import { randomHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { formatMoney } from '#shared/money.ts'
import { DAY_MS, addMs, asAppTime } from '#shared/time.ts'
import { emailAddress, validate } from '#shared/validate.ts'
import { composeMail } from './compose-mail.ts'
import { dayWords, intervalWords, momentWords, planTitle } from './words.ts'

/**
 * Sends a sample reminder with the TEST mark to an operator's own address, to try the mail server (`mail test`). Throws
 * `invalid_request` for an invalid address or without a mail server, and `MailError` if the mail server did not accept the mail.
 */
export async function sendTestMail(
  ctx: Pick<Context, 'config' | 'clock' | 'log'>,
  address: string,
  locale: MailLocale = 'en',
): Promise<void> {
  const to = validate(emailAddress, address)
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer)
    throw new AppError('invalid_request', 'no mail server is configured: set BILLING_SMTP_URL and BILLING_MAIL_FROM')
  const end = asAppTime(addMs(ctx.clock.now(), 3 * DAY_MS))
  const app = { name: 'Paygate', mailFrom: null, pageSettings: null, isSandbox: true }
  const nobody = { name: '', ccEmails: [], bccEmails: [], endUser: null, emailVerified: null }
  const reader = readerOf(app, locale)
  const sampleUrl = `${ctx.config.baseUrl}/renew/sample`
  const mail = await composeMail(
    ctx.config,
    app,
    { ...nobody, email: to, locale },
    {
      template: 'renewal-reminder',
      id: `test.${randomHex(8)}`,
      values: {
        stage: 3,
        in_trial: false,
        customer_name: to,
        plan_name: 'Premium',
        plan_title: planTitle('Premium', locale),
        interval: intervalWords({ unit: 'month', count: 1 }, locale),
        amount: formatMoney(99_000, 'VND', locale),
        period_end: momentWords(end, reader),
        period_end_day: dayWords(end, reader),
        renew_url: sampleUrl,
        opt_out_url: `${sampleUrl}/opt-out`,
      },
    },
  )
  try {
    await mailer.send(mail)
  } finally {
    mailer.close()
  }
}
