import { enabledMethods } from '#apps/methods.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Method } from './provider.ts'
import { listProviders } from './providers.ts'

/** The methods that the app has enabled and that can take this amount (smallest unit) in this currency now. */
export async function availableMethods(ctx: Context, app: App, amount: number, currency: string): Promise<Method[]> {
  const enabled = await enabledMethods(ctx.db, app.id)
  const available: Method[] = []
  for (const provider of listProviders()) {
    if (!enabled.has(provider.method) || !provider.accepts(amount, currency)) continue
    if (!provider.isReady || (await provider.isReady(ctx, app, enabled))) available.push(provider.method)
  }
  return available
}
