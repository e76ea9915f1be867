import type { Context } from '#context.ts'
import { keptLanguage, pathBase, type PageHttp } from '#http/html.ts'
import { providerOf, type Method } from '#providers/providers.ts'

/**
 * Where a form redirects to reach an address. One of our own pages becomes a path, in the picked language: the browser may have reached us
 * under another host name, and the form's policy forbids redirects to other origins. Any other address stays as it is.
 */
export function formRedirect(ctx: Context, http: PageHttp, url: string): string {
  const { baseUrl } = ctx.config
  const isOurs = ['/checkout/', '/renew/'].some((path) => url.startsWith(baseUrl + path))
  return isOurs ? pathBase(ctx) + url.slice(baseUrl.length) + keptLanguage(http) : url
}

/** CSP sources of the providers that are offered: where a form may redirect besides our own pages. */
export function providerSources(ctx: Context, methods: readonly Method[]): string[] {
  return methods.flatMap((method) => providerOf(method).redirectSources?.(ctx.config) ?? [])
}
