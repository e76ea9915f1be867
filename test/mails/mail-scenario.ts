import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

/** A scenario whose mails go to a mail server of its own. */
export interface MailScenario extends Scenario {
  readonly inbox: SmtpInbox
  stop(): Promise<void>
}

export async function startMailScenario(settings: Readonly<Record<string, string>> = {}): Promise<MailScenario> {
  const inbox = await SmtpInbox.open()
  const mail = { BILLING_SMTP_URL: inbox.url, BILLING_MAIL_FROM: 'billing@pay.example' }
  const scenario = await startScenario({}, { ...mail, ...settings })
  const stop = async (): Promise<void> => {
    await scenario.service.stop()
    await inbox.stop()
  }
  return { ...scenario, inbox, stop }
}
