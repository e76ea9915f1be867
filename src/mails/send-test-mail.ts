import { z } from 'zod'
import type { Context } from '#context.ts'
import { openMailer } from '#mail/open-mailer.ts'
import { randomHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { DAY_MS, addMs, asAppTime, type RealTime } from '#shared/time.ts'
import { emailAddress, validate } from '#shared/validate.ts'
import { composeReminder, type ReminderContent } from './reminders/compose-reminder.ts'

/**
 * Sends a sample reminder with the TEST mark to an operator's own address, to try the mail server (`mail test`). Throws
 * `invalid_request` for an invalid address or without a mail server, and `MailError` if the mail server did not accept the mail.
 */
export async function sendTestMail(
  ctx: Pick<Context, 'config' | 'clock' | 'log'>,
  address: string,
  locale: Locale = 'en',
): Promise<void> {
  const { address: to } = validate(z.object({ address: emailAddress }), { address })
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer)
    throw new AppError('invalid_request', 'no mail server is configured: set BILLING_SMTP_URL and BILLING_MAIL_FROM')
  const mail = await composeReminder(ctx.config, sampleFor(to, locale, ctx.clock.now()))
  try {
    await mailer.send({ ...mail, messageId: `${randomHex(8)}.${mail.messageId}` })
  } finally {
    mailer.close()
  }
}

function sampleFor(to: string, locale: Locale, now: RealTime): ReminderContent {
  return {
    app: { name: 'Paygate', mailFrom: null, pageSettings: null, isSandbox: true },
    subscription: { id: 0, inTrial: false, renewalToken: 'sample' },
    periodEnd: asAppTime(addMs(now, 3 * DAY_MS)),
    stage: 3,
    plan: { name: 'Premium' },
    price: { intervalUnit: 'month', intervalCount: 1, amount: 99_000, currency: 'VND' },
    promotion: null,
    customer: { name: to, email: to, locale, ccEmails: [], bccEmails: [], endUser: null, emailVerified: null },
  }
}
