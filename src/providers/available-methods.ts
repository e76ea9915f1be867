import type { PayableApp } from '#apps/store.ts'
import type { Queries } from '#db/queries.ts'
import { AppError } from '#shared/errors.ts'
import { enabledMethods } from './methods.ts'
import type { Provider } from './provider.ts'
import { listProviders, type Method } from './providers.ts'

/**
 * The methods that the app has enabled and that can take this amount (smallest unit) in this currency now. They are in the order in which
 * payers see them: those with a QR code first, which most payers in Vietnam use (R341). `known`: the enabled methods, if the caller has
 * read them.
 */
export async function availableMethods(
  db: Queries,
  app: PayableApp,
  amount: number,
  currency: string,
  known?: ReadonlySet<string>,
): Promise<Method[]> {
  const names = known ?? (await enabledMethods(db, app.id))
  const enabled = listProviders().filter(({ method }) => names.has(method))
  const available: Method[] = []
  for (const provider of byQrCode(enabled)) {
    if (!provider.accepts(amount, currency)) continue
    if (!provider.isReady || (await provider.isReady(db, app, enabled))) available.push(provider.method)
  }
  return available
}

/** Throws `payment_method_unavailable` unless the method is among those that the payer can choose. */
export function requireAmong(methods: readonly Method[], method: Method): void {
  if (methods.includes(method)) return
  throw new AppError('payment_method_unavailable', `payment_method: ${method} cannot be used for this payment`, {
    field: 'payment_method',
  })
}

/** The methods that the app has enabled but cannot offer for any amount, because something that they need is missing. */
export async function methodsNotReady(db: Queries, app: PayableApp): Promise<Method[]> {
  const names = await enabledMethods(db, app.id)
  const enabled = listProviders().filter(({ method }) => names.has(method))
  const lacking: Method[] = []
  for (const provider of enabled)
    if (provider.isReady && !(await provider.isReady(db, app, enabled))) lacking.push(provider.method)
  return lacking
}

function byQrCode(providers: readonly Provider<Method>[]): readonly Provider<Method>[] {
  return [...providers.filter(({ hasQrCode }) => hasQrCode), ...providers.filter(({ hasQrCode }) => !hasQrCode)]
}
