import type { Context } from '#context.ts'
import { keptLanguage, pathBase, type PageHttp } from '#http/html.ts'
import { providerOf, type Method } from '#providers/providers.ts'

/**
 * Our own pages by their path, in the picked language: the browser may know us under another name, and a redirect across origins leaves
 * the form's policy. Other addresses stay as they are.
 */
export function nearAddress(ctx: Context, http: PageHttp, url: string): string {
  const { baseUrl } = ctx.config
  const isOurs = ['/checkout/', '/renew/'].some((path) => url.startsWith(baseUrl + path))
  return isOurs ? pathBase(ctx) + url.slice(baseUrl.length) + keptLanguage(http) : url
}

/** Where a form may lead besides our own pages: to the pages of the providers that are offered. */
export function providerSources(ctx: Context, methods: readonly Method[]): string[] {
  return methods.flatMap((method) => providerOf(method).redirectSources?.(ctx.config) ?? [])
}
