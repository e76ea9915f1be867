import { listApps, listAppsWithMethod } from '#apps/store.ts'
import { listBankAccounts } from '#bank-accounts/store.ts'
import type { Context } from '#context.ts'
import { bankTransfer } from '#providers/bank-transfer/bank-transfer.ts'
import { listProviders } from '#providers/providers.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'
import { needsMailbox } from './banks/readers.ts'

/** Whether the settings of the bank-mail relay are consistent with each other and with the apps that take bank transfers. */
export async function checkRelay(ctx: Context): Promise<CheckResult[]> {
  const [methods, apps] = await Promise.all([listAppsWithMethod(ctx.db, bankTransfer.method), listApps(ctx.db)])
  const running = new Set(apps.filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const isUsed = methods.some(({ appId, isEnabled }) => isEnabled && running.has(appId))
  const results = [...settingResults(ctx, { isUsed }), ...(await transferResults(ctx)), ...(await mailboxResults(ctx))]
  if (results.length > 0) return results
  const { secret } = ctx.config.relay
  return [
    passed('relay', secret === null ? 'not used: BILLING_RELAY_SECRET is not set' : 'its settings are consistent'),
  ]
}

/** `isUsed`: whether an app takes bank transfers, so that an untrusted mail may be lost money. */
function settingResults({ config: { relay, env } }: Context, { isUsed }: { readonly isUsed: boolean }): CheckResult[] {
  const { secret, authservIds, trustedForwarders, trustedArcSealers, address } = relay
  const others = [...authservIds, ...trustedForwarders, ...trustedArcSealers]
  if (secret === null) {
    if (others.length === 0 && address === null) return []
    const detail = 'the relay has settings but no secret: its endpoint answers 404'
    return [failed('relay', detail, 'set BILLING_RELAY_SECRET, the same as in the environment of bin/bank-mail-relay')]
  }
  const results: CheckResult[] = []
  if (authservIds.length === 0) {
    const fix = 'set BILLING_RELAY_AUTHSERV_IDS to the authserv-id of your receiving mail server'
    const result = isUsed ? failed : warning
    results.push(result('relay', 'no receiving mail server is trusted: every bank mail is untrusted', fix))
  }
  if (address === null && env === 'production') {
    const fix = 'set BILLING_RELAY_ADDRESS, such as bank+{code}@pay.example.com'
    results.push(warning('relay', 'operators do not see the forward address of bank accounts', fix))
  }
  return results
}

/** Accounts without a mailbox whose bank does not name them in its mails: these mails complete no payment. */
async function mailboxResults(ctx: Context): Promise<CheckResult[]> {
  const [apps, accounts] = await Promise.all([listApps(ctx.db), listBankAccounts(ctx.db)])
  const lacking = accounts.filter(({ bin, mailbox, disabledAt }) => needsMailbox(bin) && !mailbox && !disabledAt)
  return lacking.flatMap(({ id, bank }): CheckResult[] => {
    const paidThere = apps.filter(({ bankAccountId, disabledAt }) => bankAccountId === id && disabledAt === null)
    if (paidThere.length === 0) return []
    const names = paidThere.map((app) => app.id).join(', ')
    const detail = `bank account ${id} (${bank}) of app ${names} has no mailbox, so no mail from its bank completes a payment`
    return [warning('relay', detail, `run billing-cli bank-account update ${id} --mailbox <address>`)]
  })
}

/** Apps with manual bank transfer enabled that cannot offer it. */
async function transferResults(ctx: Context): Promise<CheckResult[]> {
  const reporters = listProviders().filter(({ reportsTransfers }) => reportsTransfers)
  const [methods, apps, accounts, ...reported] = await Promise.all([
    listAppsWithMethod(ctx.db, bankTransfer.method),
    listApps(ctx.db),
    listBankAccounts(ctx.db),
    ...reporters.map(({ method }) => listAppsWithMethod(ctx.db, method)),
  ])
  const usable = new Set(accounts.filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const withReports = new Set(
    reported
      .flat()
      .filter(({ isEnabled }) => isEnabled)
      .map(({ appId }) => appId),
  )
  const [reporter] = reporters
  return methods.flatMap(({ appId, isEnabled }): CheckResult[] => {
    const app = apps.find(({ id }) => id === appId)
    if (!isEnabled || !app || app.disabledAt !== null) return []
    const name = `app ${appId} has ${bankTransfer.method} enabled and does not offer it:`
    const results: CheckResult[] = []
    if (app.bankAccountId === null || !usable.has(app.bankAccountId)) {
      const fix = `run billing-cli bank-account assign ${appId} <bank_account_id>`
      results.push(warning('relay', `${name} no active bank account is assigned`, fix))
    }
    if (!withReports.has(appId) && reporter) {
      const fix = `run billing-cli method enable ${appId} ${reporter.method}`
      results.push(warning('relay', `${name} it needs ${reporter.texts.en.name} too`, fix))
    }
    if (results.length === 0 && ctx.config.relay.secret === null) {
      const detail = `app ${appId} takes bank transfers, and no bank mail can arrive`
      results.push(warning('relay', detail, 'set up the bank-mail relay: BILLING_RELAY_SECRET, and docs/payments.md'))
    }
    return results
  })
}
