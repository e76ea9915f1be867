import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Middleware, ParameterizedContext } from 'koa'
import type { Liquid } from 'liquidjs'
import type { Context } from '#context.ts'
import { sha256Base64, sha256Hex } from '#shared/crypto.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { API_BODY_BYTES } from './body.ts'
import type { RequestState } from './errors.ts'
import { keepWordsTogether } from './vietnamese.ts'

/**
 * The kit of the hosted pages. A page is a template in `templates/pages` that fills the block `content` of `layout.liquid`:
 *
 *     {% layout 'layout.liquid' %}
 *     {% block content %}<h1>{{ title }}</h1> <p>{{ words.hello }}</p>{% endblock %}
 *
 * and a route that sets the owner of the page and sends it:
 *
 *     http.state.owner = { appName: app.name, isTest: app.isSandbox, customerLocale: customer?.locale ?? null }
 *     const locale = pageLocale(http)
 *     await sendPage(ctx, http, { template: 'renew', title: 'Renew Pro', values: { words: { hello: 'Hello' } } })
 *
 * Everything that a template prints is escaped. A variable that is not set is an error (pass null if there is none). The layout has `page`:
 * `locale`, `base` (put in front of each of our paths), `keep` (appended to each of our paths, so that a chosen language stays), `title`,
 * `appName`, `isTest`, `languages`. Links and forms to our own pages are written `{{ page.base }}/renew/…{{ page.keep }}`.
 *
 * The policy blocks inline styles and scripts. Styles go into `style.css`, and attributes switch on the functions of `page.js`:
 * - `data-copy="text" data-copied="Copied" hidden` on a button shows the button, which copies the text;
 * - `data-countdown="seconds"` counts down and then loads the page again;
 * - `data-poll="path of the status" data-seen="its ETag" data-paid="words"` polls and goes to `redirect_url` (or to `data-next`);
 * - `data-slow="seconds"` replaces, after so many seconds, the text of each `data-slow-text` in it, and shows each `data-slow-link`;
 * - `data-once` on a form blocks a second press.
 *
 * `friendlyErrors` (`pages/message.ts`), which goes before the routes, turns the errors of a route into a page.
 */

/** Languages of the pages. */
export type PageLocale = 'en' | 'vi'

/** The seller whose page it is. A route sets it as soon as it knows, so that an error page shows it too. */
export interface PageOwner {
  readonly appName: string
  /** Sandbox apps' pages carry a visible TEST mark (R218). */
  readonly isTest: boolean
  readonly customerLocale: PageLocale | null
  /** The path to start again from after an error, such as `/checkout/…`; absent if there is none. */
  readonly home?: string
  /** Where the payer came from; only http(s) addresses become links. */
  readonly exit?: string
  /** Whether money may still be on its way by bank transfer, so that the page says what happens to it. */
  readonly takesTransfers?: boolean
  /** Whether the subscription has changed since the link was made, so that the link can no longer be paid. */
  readonly isOvertaken?: boolean
  /** Whether a payment by the link would not be applied any more: an operator decides about money that still comes. */
  readonly isRefused?: boolean
  /** Whether the payment is being processed, so that the payer must not pay again (R217). */
  readonly isProcessing?: boolean
  /** How the seller's pages look; see `brandOf`. */
  readonly brand?: () => Brand
  /** The part of the money that has arrived; absent if none or all of it has. */
  readonly part?: PartPaid
}

/** The look that a seller has set for its pages. */
export interface Brand {
  /** Path of its logo. */
  readonly logo: string | null
  /** A style sheet with its colours. */
  readonly style: string | null
  readonly support: string | null
  readonly terms: string | null
  readonly privacy: string | null
}

/** Amounts in the smallest unit of `currency`. */
export interface PartPaid {
  readonly received: number
  readonly asked: number
  readonly due: number
  readonly currency: string
  /** How to transfer the rest; null if the payment takes no transfer. */
  readonly transfer: TransferFacts | null
}

/** What a payer types in to make a transfer. Amounts in whole dong. */
export interface TransferFacts {
  readonly transferCode: string
  readonly bankName: string
  readonly accountNumber: string
  readonly accountHolder: string
  /** The amount that is still missing. */
  readonly amountDue: number
  readonly amountReceived: number
}

export interface PageState extends RequestState {
  owner?: PageOwner
}

/** Request and answer of a page. */
export type PageHttp = ParameterizedContext<PageState>

export interface HostedPage {
  /** Name of a file `<template>.liquid` under `templates/pages`. */
  readonly template: string
  readonly title: string
  readonly values: Readonly<Record<string, unknown>>
  /** 200 if absent. */
  readonly status?: number
  /** Sources besides our own that a form of this page may lead to, redirects included: see `formSource`. */
  readonly formSources?: readonly string[]
  /** Makes a browser without scripts load this path after so many seconds. */
  readonly reload?: { readonly path: string; readonly seconds: number }
  /** Makes the browser go to this http(s) address after so many seconds. */
  readonly leadsTo?: { readonly url: string; readonly seconds: number }
}

const FOLDER = join(import.meta.dirname, '../../templates/pages')
const LANGUAGES = [
  { lang: 'en', name: 'English' },
  { lang: 'vi', name: 'Tiếng Việt' },
] as const
/** How long browsers cache pages that are the same for everybody. */
const SHARED_SECONDS = 300
const LAYOUT_WORDS = {
  en: {
    test: 'sandbox, no real money',
    skip: 'Skip to content',
    language: 'Language',
    about: (appName: string) => `About ${appName}`,
    support: 'Help',
    terms: 'Terms',
    privacy: 'Privacy',
  },
  vi: {
    test: 'thử nghiệm, không thu tiền thật',
    skip: 'Đến nội dung chính',
    language: 'Ngôn ngữ',
    about: (appName: string) => `Thông tin về ${appName}`,
    support: 'Hỗ trợ',
    terms: 'Điều khoản',
    privacy: 'Quyền riêng tư',
  },
} as const

/** Loaded for the first page, as koa-body is for the first form: a service without pages loads neither. */
let engine: Promise<Liquid> | null = null

async function openEngine(): Promise<Liquid> {
  const { Liquid } = await import('liquidjs')
  return new Liquid({
    root: FOLDER,
    extname: '.liquid',
    cache: true,
    outputEscape: 'escape',
    // A missing value must not become a gap in a page that takes money.
    strictVariables: true,
    strictFilters: true,
  })
}

/**
 * The language of a page: the one picked on the page (`?lang=vi`), else what the browser asks for, else the customer's, else English. A
 * browser that accepts any language counts as asking for none.
 */
export function pageLocale(http: PageHttp): PageLocale {
  const fallback = http.state.owner?.customerLocale ?? 'en'
  const accepted = http.acceptsLanguages(fallback, fallback === 'en' ? 'vi' : 'en')
  return pickedLocale(http) ?? (accepted === 'en' || accepted === 'vi' ? accepted : fallback)
}

function pickedLocale(http: PageHttp): PageLocale | null {
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
interface Visit {
  readonly locale: PageLocale
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
  setPageHeaders(http, page.formSources ?? [], owner?.brand?.().style ?? null)
  http.set('Content-Language', locale)
  http.vary('Accept-Language')
  http.type = 'text/html; charset=utf-8'
  http.body = locale === 'vi' ? keepWordsTogether(html) : html
}

/** A page in English that is the same for everybody, for `sendShared`. */
export async function renderShared(ctx: Context, page: HostedPage): Promise<SharedBody> {
  const html = await renderPage(ctx, page, { locale: 'en', keep: '', owner: undefined, hasLanguages: false })
  return sharedBody(html, 'text/html; charset=utf-8')
}

/** A body that is the same for everybody. */
export interface SharedBody {
  readonly content: Buffer
  readonly type: string
  readonly etag: string
}

export function sharedBody(text: string, type: string): SharedBody {
  const content = Buffer.from(text)
  return { content, type, etag: sha256Hex(content).slice(0, 32) }
}

/** Sends the body, or 304 to browsers that already have it. */
export function sendShared(http: PageHttp, { content, type, etag }: SharedBody): void {
  setPageHeaders(http)
  http.set('Cache-Control', `public, max-age=${SHARED_SECONDS}`)
  http.etag = etag
  http.status = 200
  if (http.fresh) {
    http.status = 304
    return
  }
  http.type = type
  http.body = content
}

async function renderPage(ctx: Context, page: HostedPage, visit: Visit): Promise<string> {
  const { locale, keep, owner, hasLanguages } = visit
  const { css, js } = pageFiles()
  const base = pathBase(ctx)
  const { leadsTo } = page
  const brand = owner?.brand?.()
  const frame = {
    locale,
    base,
    keep,
    title: page.title,
    appName: owner?.appName ?? null,
    logo: brand?.logo ? base + brand.logo : null,
    style: brand?.style ?? null,
    about: LAYOUT_WORDS[locale].about(owner?.appName ?? ''),
    links: brand ? linksOf(brand, locale) : [],
    isTest: owner?.isTest ?? false,
    reload: page.reload ?? null,
    leadsTo: leadsTo && linkable(leadsTo.url) ? { seconds: leadsTo.seconds, url: new URL(leadsTo.url).href } : null,
    css: base + css.path,
    js: base + js.path,
    words: LAYOUT_WORDS[locale],
    languages: hasLanguages ? LANGUAGES.map((entry) => ({ ...entry, isCurrent: entry.lang === locale })) : [],
  }
  const liquid = await (engine ??= openEngine())
  return (await liquid.renderFile(page.template, { ...page.values, page: frame })) as string
}

function linksOf({ support, terms, privacy }: Brand, locale: PageLocale): { href: string; label: string }[] {
  const words = LAYOUT_WORDS[locale]
  const links: [string | null, string][] = [
    [support?.includes('://') === false ? `mailto:${support}` : support, words.support],
    [terms, words.terms],
    [privacy, words.privacy],
  ]
  return links.flatMap(([href, label]) => (href === null ? [] : [{ href, label }]))
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

let bodyReader: Promise<Middleware> | null = null

/** Reads the body of a page's form, or of the same call as JSON, into `http.request.body`. */
export const pageBody: Middleware = async (http, next) => {
  const read = await (bodyReader ??= openBodyReader())
  await read(http, next)
}

async function openBodyReader(): Promise<Middleware> {
  const { koaBody } = await import('koa-body')
  return koaBody({
    multipart: false,
    text: false,
    formLimit: API_BODY_BYTES,
    jsonLimit: API_BODY_BYTES,
    onError(error) {
      const { status } = error as { status?: unknown }
      if (status === 413) throw new AppError('payload_too_large', `the body is larger than ${API_BODY_BYTES} bytes`)
      throw new AppError('invalid_request', 'the body is neither a valid form nor valid JSON in UTF-8', {
        cause: error,
      })
    },
  })
}

interface PageFile {
  readonly path: string
  readonly type: string
  readonly content: Buffer
}

type PageFiles = Readonly<Record<'css' | 'js' | 'search', PageFile>>
let readFiles: PageFiles | null = null

function pageFiles(): PageFiles {
  readFiles ??= {
    css: pageFile('style.css', 'text/css'),
    js: pageFile('page.js', 'text/javascript'),
    search: pageFile('search.js', 'text/javascript'),
  }
  return readFiles
}

/** The path of the script that only the reference needs. */
export function searchScript(): string {
  return pageFiles().search.path
}

function pageFile(name: string, type: string): PageFile {
  const content = readFileSync(join(FOLDER, name))
  const extension = name.slice(name.lastIndexOf('.'))
  return { path: `/assets/${sha256Hex(content).slice(0, 16)}${extension}`, type: `${type}; charset=utf-8`, content }
}

/** Serves the pages' style sheet and script under names that change with their content, so that browsers cache them permanently. */
export function sendAsset(http: PageHttp): void {
  const file = Object.values(pageFiles()).find(({ path }) => path === http.path)
  if (!file) throw notFound('file')
  http.set({ 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' })
  http.type = file.type
  http.body = file.content
}
