import type { Context } from '#context.ts'
import { openMailer } from '#mail/open-mailer.ts'
import { messageOf } from '#shared/errors.ts'
import { failed, passed, type CheckResult } from '#shared/check-result.ts'

/** Whether reminders can be mailed. */
export async function checkMail(ctx: Context): Promise<CheckResult[]> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) {
    return [
      failed(
        'smtp',
        'no mail server is configured: reminders are not sent',
        'set BILLING_SMTP_URL and BILLING_MAIL_FROM',
      ),
    ]
  }
  try {
    await mailer.verify()
    if (ctx.config.smtpUrl !== null) return [passed('smtp', 'the mail server accepts mail')]
    return [passed('smtp', `development: mails are files in ${ctx.config.home}/mail`)]
  } catch (error) {
    return [
      failed(
        'smtp',
        `the mail server does not accept mail: ${messageOf(error)}`,
        'check BILLING_SMTP_URL (host, port, user, password), then try billing-cli doctor again',
      ),
    ]
  } finally {
    mailer.close()
  }
}
