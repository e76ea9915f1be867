import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { App } from '#apps/store.ts'
import { setAppDisabled, updateApp } from '#apps/update-app.ts'
import * as add from '#bank-accounts/add-bank-account.ts'
import * as assign from '#bank-accounts/assign-bank-account.ts'
import * as disable from '#bank-accounts/disable-bank-account.ts'
import type { BankAccount } from '#bank-accounts/store.ts'
import * as update from '#bank-accounts/update-bank-account.ts'
import type { Context } from '#context.ts'
import { updatePlan } from '#plans/update-plan.ts'
import * as methods from '#providers/methods.ts'
import type { Method } from '#providers/providers.ts'
import { formatId } from '#shared/ids.ts'
import * as attach from '#subscriptions/attach-customer.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { switchPlan } from '#subscriptions/switch-plan.ts'

/** Commands of operators that many tests need; each is performed as `login`. */

/** The settings of `app update`. */
export async function changeApp(ctx: Context, login: string, app: App, input: object): Promise<App> {
  return perform(ctx, operator(login), updateApp, input, { app })
}

export async function setDisabled(ctx: Context, login: string, app: App, isDisabled: boolean): Promise<void> {
  await perform(ctx, operator(login), setAppDisabled, undefined, { app, isDisabled })
}

export async function archivePlan(ctx: Context, login: string, app: App, planId: number): Promise<void> {
  await perform(ctx, operator(login), updatePlan, { status: 'archived' }, { app, planId })
}

/** Attaches a customer to the subscription of `user-1`. */
export async function attachCustomer(ctx: Context, login: string, app: App, customerId: number): Promise<Subscription> {
  const input = { customer_id: formatId('cus', customerId) }
  const scope = { app, externalRef: 'user-1', endUser: null }
  return (await perform(ctx, operator(login), attach.attachCustomer, input, scope)).subscription
}

/** Switches the subscription of `user-1` to a price. */
export async function switchTo(ctx: Context, login: string, app: App, price: string): Promise<void> {
  await perform(ctx, operator(login), switchPlan, { price_id: price }, { app, externalRef: 'user-1' })
}

export async function enableMethod(
  ctx: Context,
  login: string,
  app: App,
  method: Method,
  credentials?: object,
): Promise<void> {
  await perform(ctx, operator(login), methods.enableMethod, credentials, { app, method })
}

export async function disableMethod(ctx: Context, login: string, app: App, method: Method): Promise<void> {
  await perform(ctx, operator(login), methods.disableMethod, undefined, { app, method })
}

export async function forgetVersion(
  ctx: Context,
  login: string,
  app: App,
  method: Method,
  version: number,
): Promise<methods.ForgottenVersion> {
  return perform(ctx, operator(login), methods.forgetVersion, { version }, { app, method })
}

export async function addBankAccount(ctx: Context, login: string, input: object): Promise<BankAccount> {
  return perform(ctx, operator(login), add.addBankAccount, input, {})
}

export async function assignBankAccount(
  ctx: Context,
  login: string,
  app: App,
  accountId: number,
): Promise<BankAccount> {
  return perform(ctx, operator(login), assign.assignBankAccount, undefined, { app, accountId })
}

export async function disableBankAccount(ctx: Context, login: string, accountId: number): Promise<BankAccount> {
  return perform(ctx, operator(login), disable.disableBankAccount, undefined, { accountId })
}

export async function updateBankAccount(
  ctx: Context,
  login: string,
  accountId: number,
  input: object,
): Promise<BankAccount> {
  return perform(ctx, operator(login), update.updateBankAccount, input, { accountId })
}
