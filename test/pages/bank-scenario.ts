import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { addMs, DAY_MS } from '#shared/time.ts'
import { providerAccounts } from '#providers/accounts/store.ts'
import { providerSessions } from '#providers/store.ts'
import { addBankAccount, assignBankAccount, enableMethod } from '../support/operators.ts'
import { type AppOptions, transferred } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

export const ACCOUNT = { bank: 'VCB', number: '0123456789012', holder: 'CONG TY SACH NOI' } as const
const OPERATOR = 'tester'

/** A scenario whose app accepts bank transfers and the test method. */
export async function startBankScenario(
  options: AppOptions = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<Scenario> {
  const scenario = await startScenario(options, settings)
  await takeTransfers(scenario.service.ctx, scenario.app.app)
  return scenario
}

/** Lets an app take payments through payOS, and bank transfers to an account of its own. */
export async function takeTransfers(ctx: Context, app: App): Promise<void> {
  await enableMethod(ctx, OPERATOR, app, 'payos', { clientId: 'client', apiKey: 'key', checksumKey: 'checksum' })
  const account = await addBankAccount(ctx, OPERATOR, ACCOUNT)
  await assignBankAccount(ctx, OPERATOR, app, account.id)
  await enableMethod(ctx, OPERATOR, app, 'bank_transfer')
}

/** A transfer that the bank has reported. */
export async function transfer(
  { service: { ctx } }: { readonly service: { readonly ctx: Context } },
  transactionId: number,
  amount: number,
): Promise<void> {
  await transferred(ctx, transactionId, amount)
}

/** Has a debit of the transaction's whole amount under way, which its bank has not confirmed yet. */
export async function debitUnderWay({ service, app }: Scenario, transactionId: number): Promise<void> {
  const { db, clock } = service.ctx
  const account = await db.one(providerAccounts, "WHERE app_id = ? AND method = 'payos'", [app.app.id])
  await db.insert(providerSessions, {
    appId: app.app.id,
    transactionId,
    provider: 'payos',
    providerAccountId: account!.id,
    reference: `cs_under_way_${transactionId}`,
    url: null,
    amount: 99_000,
    currency: 'VND',
    status: 'processing',
    expiresAt: clock.now(),
    lookups: 0,
    failures: 0,
    nextLookupAt: addMs(clock.now(), DAY_MS),
    createdAt: clock.now(),
    updatedAt: clock.now(),
  })
}
