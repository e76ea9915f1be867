import type { Context } from '#context.ts'
import { formSource, keptLanguage, pathBase, type PageHttp } from '#http/html.ts'
import type { Method } from '#providers/provider.ts'

/**
 * Our own pages by their path, in the picked language: the browser may know us under another name, and a redirect across origins leaves
 * the form's policy. Other addresses stay as they are.
 */
export function nearAddress(ctx: Context, http: PageHttp, url: string): string {
  const { baseUrl } = ctx.config
  const isOurs = ['/checkout/', '/renew/'].some((path) => url.startsWith(baseUrl + path))
  return isOurs ? pathBase(ctx) + url.slice(baseUrl.length) + keptLanguage(http) : url
}

/** Where a form may lead besides our own pages: to the page of a provider, where one is offered. */
export function providerSources(ctx: Context, methods: readonly Method[]): string[] {
  const { env, stripeApiBase, payosApiBase } = ctx.config
  if (!methods.includes('card') && !methods.includes('payos')) return []
  const stands = env === 'development' ? [stripeApiBase, payosApiBase] : []
  return ['https:', ...stands.filter((base) => base !== null).map(formSource)]
}
