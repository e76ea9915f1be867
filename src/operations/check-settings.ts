import { listApps, listAppsWithMethod } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { openMailer } from '#mail/send.ts'
import { needsMailbox } from '#bank-mail/banks/readers.ts'
import { listBankAccountRows } from '#providers/bank-transfer/store.ts'
import { messageOf } from '#shared/errors.ts'
import { fault, sound, warning, type Finding } from './finding.ts'

/** Whether reminders can be mailed. */
export async function checkMail(ctx: Context): Promise<Finding[]> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) {
    return [fault('smtp', 'no mail server is set: no reminder goes out', 'set BILLING_SMTP_URL and BILLING_MAIL_FROM')]
  }
  try {
    await mailer.verify()
    if (ctx.config.smtpUrl !== null) return [sound('smtp', 'the mail server takes mails')]
    return [sound('smtp', `development: mails are files in ${ctx.config.home}/mail`)]
  } catch (error) {
    return [
      fault(
        'smtp',
        `the mail server does not take mails: ${messageOf(error)}`,
        'check BILLING_SMTP_URL (host, port, user, password), then try billing-cli doctor again',
      ),
    ]
  } finally {
    mailer.close()
  }
}

/** Whether the settings of the bank-mail relay fit each other and the apps that take bank transfers. */
export async function checkRelay(ctx: Context): Promise<Finding[]> {
  const [methods, apps] = await Promise.all([listAppsWithMethod(ctx.db, 'bank_transfer'), listApps(ctx.db)])
  const running = new Set(apps.filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const isUsed = methods.some(({ appId, isEnabled }) => isEnabled && running.has(appId))
  const faults = [...relayFaults(ctx, isUsed), ...(await transferFaults(ctx)), ...(await mailboxFaults(ctx))]
  if (faults.length > 0) return faults
  const { secret } = ctx.config.relay
  return [sound('relay', secret === null ? 'not used: BILLING_RELAY_SECRET is not set' : 'its settings fit each other')]
}

/** `isUsed`: an app takes bank transfers, so that a mail which is not believed is money that nobody sees. */
function relayFaults({ config: { relay, env } }: Context, isUsed: boolean): Finding[] {
  const { secret, authservIds, trustedForwarders, trustedArcSealers, address } = relay
  const others = [...authservIds, ...trustedForwarders, ...trustedArcSealers]
  if (secret === null) {
    if (others.length === 0 && address === null) return []
    const detail = 'the relay has settings and no secret: its endpoint answers 404'
    return [fault('relay', detail, 'set BILLING_RELAY_SECRET, the same as in the environment of bin/bank-mail-relay')]
  }
  const findings: Finding[] = []
  if (authservIds.length === 0) {
    const mend = 'set BILLING_RELAY_AUTHSERV_IDS to the authserv-id of your receiving mail server'
    findings.push(
      (isUsed ? fault : warning)('relay', 'no receiving mail server is believed: every bank mail is untrusted', mend),
    )
  }
  if (address === null && env === 'production') {
    const mend = 'set BILLING_RELAY_ADDRESS, such as bank+{code}@pay.example.com'
    findings.push(warning('relay', 'operators are not shown the forward address of bank accounts', mend))
  }
  return findings
}

/** Accounts whose bank does not name them in its mails, and whose mailbox nobody named either: their mails complete nothing. */
async function mailboxFaults(ctx: Context): Promise<Finding[]> {
  const [apps, accounts] = await Promise.all([listApps(ctx.db), listBankAccountRows(ctx.db)])
  const lacking = accounts.filter(({ bin, mailbox, disabledAt }) => needsMailbox(bin) && !mailbox && !disabledAt)
  return lacking.flatMap(({ id, bank }): Finding[] => {
    const paidThere = apps.filter(({ bankAccountId, disabledAt }) => bankAccountId === id && disabledAt === null)
    if (paidThere.length === 0) return []
    const names = paidThere.map((app) => app.id).join(', ')
    const detail = `bank account ${id} (${bank}) of app ${names} has no mailbox, so that no mail of its bank completes a payment`
    return [warning('relay', detail, `run billing-cli bank-account update ${id} --mailbox <address>`)]
  })
}

/** Apps that offer manual bank transfer and could not take it. */
async function transferFaults(ctx: Context): Promise<Finding[]> {
  const [methods, payos, apps, accounts] = await Promise.all([
    listAppsWithMethod(ctx.db, 'bank_transfer'),
    listAppsWithMethod(ctx.db, 'payos'),
    listApps(ctx.db),
    listBankAccountRows(ctx.db),
  ])
  const usable = new Set(accounts.filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const withPayos = new Set(payos.filter(({ isEnabled }) => isEnabled).map(({ appId }) => appId))
  return methods.flatMap(({ appId, isEnabled }): Finding[] => {
    const app = apps.find(({ id }) => id === appId)
    if (!isEnabled || !app || app.disabledAt !== null) return []
    const name = `app ${appId} has bank_transfer enabled and does not offer it:`
    if (app.bankAccountId === null || !usable.has(app.bankAccountId)) {
      const mend = `run billing-cli bank-account assign ${appId} <bank_account_id>`
      return [warning('relay', `${name} no active bank account is assigned`, mend)]
    }
    if (!withPayos.has(appId)) {
      return [warning('relay', `${name} it needs PayOS too`, `run billing-cli method enable ${appId} payos`)]
    }
    if (ctx.config.relay.secret === null) {
      const detail = `app ${appId} takes bank transfers, and no bank mail can arrive`
      return [warning('relay', detail, 'set up the bank-mail relay: BILLING_RELAY_SECRET, and README, Getting paid')]
    }
    return []
  })
}
