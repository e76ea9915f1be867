import type { ParameterizedContext } from 'koa'
import type { Eta } from 'eta'
import type { Context } from '#context.ts'
import { sha256Base64 } from '#shared/crypto.ts'
import type { Locale } from '#shared/locale.ts'
import { assetFiles, PAGE_FOLDER } from './assets.ts'
import type { RequestState } from './errors.ts'
import { keepWordsTogether } from './vietnamese.ts'

/**
 * The kit of the hosted pages. A page is a template in `templates/pages` that is put into `layout.eta`:
 *
 *     <% layout('./layout') %>
 *     <h1><%= title %></h1> <p><%= words.hello %></p>
 *
 * and a route that sets the owner of the page and sends it:
 *
 *     http.state.owner = { appName: app.name, isTest: app.isSandbox, customerLocale: customer?.locale ?? null }
 *     const locale = pageLocale(http)
 *     await sendPage(ctx, http, { template: 'renew', title: 'Renew Pro', values: { words: { hello: 'Hello' } } })
 *
 * Everything that a template prints is escaped, but for our own markup (`<%~ … %>`). A name that is not set is an error (pass null if there
 * is no value); a field that is not set is one only where it is printed. A part (`include('./sum')`) has all values of its page, and those
 * of its second argument. The layout has `page`:
 * `locale`, `base` (put in front of each of our paths), `keep` (appended to each of our paths, so that a chosen language stays), `title`,
 * `appName`, `isTest`, `languages`. Links and forms to our own pages are written `<%= page.base %>/renew/…<%= page.keep %>`.
 *
 * The policy blocks inline styles and scripts. Styles go into `style.css`, and attributes switch on the functions of `page.js`:
 * - `data-copy="text" data-copied="Copied" hidden` on a button shows the button, which copies the text;
 * - `data-countdown="seconds"` counts down and then loads the page again;
 * - `data-poll="path of the status" data-seen="its ETag" data-paid="words"` polls and goes to `redirect_url` (or to `data-next`). Without
 *   `data-seen`, other progress does not load the page again, nor does the end of the link with `data-late`;
 * - `data-slow="seconds"` replaces, after so many seconds, the text of each `data-slow-text` in it, and shows each `data-slow-link`;
 * - `data-once` on a form blocks a second press.
 *
 * `friendlyErrors` (`pages/message.ts`), which goes before the routes, turns the errors of a route into a page.
 */

/** The seller whose page it is. A route sets it as soon as it knows, so that an error page shows it too. */
export interface PageOwner {
  readonly appName: string
  /** Sandbox apps' pages carry a visible TEST mark (R218). */
  readonly isTest: boolean
  readonly customerLocale: Locale | null
  /** How the seller's pages look. */
  readonly brand?: (locale: Locale) => Brand
}

export interface PageLink {
  readonly href: string
  readonly label: string
}

/** The look that a seller has set for its pages. */
export interface Brand {
  /** Path of its logo. */
  readonly logo: string | null
  /** A style sheet with its colours. */
  readonly style: string | null
  readonly links: readonly PageLink[]
}

export interface PageState extends RequestState {
  owner?: PageOwner
}

/** Request and answer of a page. */
export type PageHttp = ParameterizedContext<PageState>

export interface HostedPage {
  /** Name of a file `<template>.eta` under `templates/pages`. */
  readonly template: string
  readonly title: string
  readonly values: Readonly<Record<string, string | number | boolean | object | null>>
  /** 200 if absent. */
  readonly status?: number
  /** Sources besides our own that a form of this page may lead to, redirects included: see `formSource`. */
  readonly formSources?: readonly string[]
  /** Makes a browser without scripts load this path after so many seconds. */
  readonly reload?: { readonly path: string; readonly seconds: number }
  /** Makes the browser go to this http(s) address after so many seconds. */
  readonly leadsTo?: { readonly url: string; readonly seconds: number }
}

const LANGUAGES = [
  { lang: 'en', name: 'English' },
  { lang: 'vi', name: 'Tiếng Việt' },
] as const
const LAYOUT_WORDS = {
  en: {
    test: 'sandbox, no real money',
    skip: 'Skip to content',
    language: 'Language',
    about: (appName: string) => `About ${appName}`,
  },
  vi: {
    test: 'thử nghiệm, không thu tiền thật',
    skip: 'Đến nội dung chính',
    language: 'Ngôn ngữ',
    about: (appName: string) => `Thông tin về ${appName}`,
  },
} as const

/** Loaded for the first page, so that a service without pages does not load it. */
let engine: Promise<Eta> | null = null

async function openEngine(): Promise<Eta> {
  const { templateEngine } = await import('#shared/template-engine.ts')
  return templateEngine({ escapes: true, views: PAGE_FOLDER })
}

/**
 * The language of a page: the one picked on the page (`?lang=vi`), else what the browser asks for, else the customer's, else English. A
 * browser that accepts any language counts as asking for none.
 */
export function pageLocale(http: PageHttp): Locale {
  return askedLocale(http) ?? http.state.owner?.customerLocale ?? 'en'
}

/** The language that the payer picked or the browser asks for; null if any will do. */
export function askedLocale(http: PageHttp): Locale | null {
  const accepted = http.acceptsLanguages('en', 'vi')
  const isAsked = accepted === http.acceptsLanguages('vi', 'en')
  return pickedLocale(http) ?? (isAsked && (accepted === 'en' || accepted === 'vi') ? accepted : null)
}

function pickedLocale(http: PageHttp): Locale | null {
  const { lang } = http.query
  return lang === 'en' || lang === 'vi' ? lang : null
}

/** `?lang=vi` if the payer picked a language, for links between pages. */
export function keptLanguage(http: PageHttp): string {
  const picked = pickedLocale(http)
  return picked ? `?lang=${picked}` : ''
}

/** The prefix of our own paths: the path of the base address, or empty if it has none. */
export function pathBase(ctx: Context): string {
  return new URL(ctx.config.baseUrl).pathname.replace(/(?<!\/)\/+$/, '')
}

/** The facts about a request that its page uses. */
export interface Visit {
  readonly locale: Locale
  /** Appended to each of our paths, so that a chosen language stays. */
  readonly keep: string
  readonly owner: PageOwner | undefined
  /** Whether the same address can be asked for in another language. */
  readonly hasLanguages: boolean
}

/** Renders a page and sends it with the headers of every page. */
export async function sendPage(ctx: Context, http: PageHttp, page: HostedPage): Promise<void> {
  const locale = pageLocale(http)
  const { owner } = http.state
  // The answer to a form cannot be requested again in another language.
  const hasLanguages = http.method !== 'POST'
  const html = await renderPage(ctx, page, { locale, keep: keptLanguage(http), owner, hasLanguages })
  http.status = page.status ?? 200
  setPageHeaders(http, page.formSources ?? [], owner?.brand?.(locale).style ?? null)
  http.set('Content-Language', locale)
  http.vary('Accept-Language')
  http.type = 'text/html; charset=utf-8'
  http.body = locale === 'vi' ? keepWordsTogether(html) : html
}

/** The HTML of a page. */
export async function renderPage(ctx: Context, page: HostedPage, visit: Visit): Promise<string> {
  const { locale, keep, owner, hasLanguages } = visit
  const { css, js } = assetFiles()
  const base = pathBase(ctx)
  const { leadsTo } = page
  const brand = owner?.brand?.(locale)
  const frame = {
    locale,
    base,
    keep,
    title: page.title,
    appName: owner?.appName ?? null,
    logo: brand?.logo ? base + brand.logo : null,
    style: brand?.style ?? null,
    about: LAYOUT_WORDS[locale].about(owner?.appName ?? ''),
    links: brand?.links ?? [],
    isTest: owner?.isTest ?? false,
    reload: page.reload ?? null,
    leadsTo: leadsTo && linkable(leadsTo.url) ? { seconds: leadsTo.seconds, url: new URL(leadsTo.url).href } : null,
    css: base + css.path,
    js: base + js.path,
    words: LAYOUT_WORDS[locale],
    languages: hasLanguages ? LANGUAGES.map((entry) => ({ ...entry, isCurrent: entry.lang === locale })) : [],
  }
  const pages = await (engine ??= openEngine())
  return pages.render(page.template, { ...page.values, page: frame })
}

/**
 * The headers of everything behind a token: nothing external is loaded, nothing is cached, and no address is passed on. `style` is the
 * style sheet in the page itself.
 */
export function setPageHeaders(http: PageHttp, formSources: readonly string[] = [], style: string | null = null): void {
  http.set({
    'Content-Security-Policy': [
      "default-src 'none'",
      `style-src 'self'${style === null ? '' : ` 'sha256-${sha256Base64(style)}'`}`,
      "img-src 'self' data:",
      "script-src 'self'",
      "connect-src 'self'",
      `form-action ${["'self'", ...new Set(formSources)].join(' ')}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Robots-Tag': 'noindex, nofollow',
    'Cache-Control': 'no-store',
  })
}

/**
 * The policy source that lets a form's redirect reach an address. Browsers apply `form-action` to redirects too. For a host that the
 * policy's grammar cannot express (an IPv6 literal, a `;`), allows the whole scheme rather than breaking the header.
 */
export function formSource(url: string): string {
  const { origin, protocol } = new URL(url)
  return /^https?:\/\/[a-z0-9.-]+(:\d+)?$/.test(origin) ? origin : protocol
}

/** The address if it is http(s), for a link; null for anything else, such as `javascript:`. */
export function linkable(url: string | undefined): string | null {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : null
}

/** Answers 303 to an address, unchanged if a header can carry it. */
export function seeOther(http: PageHttp, url: string): void {
  setPageHeaders(http)
  http.status = 303
  http.set('Location', /^[\x21-\x7e]+$/.test(url) ? url : new URL(url).href)
  http.body = ''
}
