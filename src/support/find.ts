import { listApps } from '#apps/store.ts'
import { listBankAccounts } from '#bank-accounts/store.ts'
import { BANK_READERS } from '#bank-mail/banks/readers.ts'
import { fitOf } from '#bank-mail/fits.ts'
import { listedMail } from '#bank-mail/list-bank-mails.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { listProviders } from '#providers/providers.ts'
import { invalidField } from '#shared/errors.ts'
import { formatId, parseId, parseNumericId, type IdKind } from '#shared/ids.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, addMs, asRealTime, formatTimestampOrNull, parseDay } from '#shared/time.ts'
import { amountsIn, isMeant, isWrittenAmount } from './amounts.ts'
import { foldName, wordsOfName } from './names.ts'
import { matchStep, type NextStep } from './next-steps.ts'
import {
  findByAccount,
  findByAmount,
  findByCodes,
  findById,
  findTransactions,
  findByMail,
  findByText,
  findByToken,
  listCustomerNames,
  listEndUsersOfCustomer,
  MAX_PER_KIND,
  type Found,
  type FoundKind,
  type Span,
} from './store.ts'

/** One thing that a text names, as operators see it. Amounts in the smallest unit of `currency`; times in UTC. */
export interface Match {
  readonly kind: FoundKind
  /** `cus_5`, `17` */
  readonly id: string
  readonly app_id: number | null
  readonly external_ref: string | null
  readonly amount: number | null
  readonly currency: string | null
  readonly state: string | null
  readonly at: string | null
  /** `subscription.updated` of an event; null of any other kind. */
  readonly event_type: string | null
}

/** An end user that the matches are about. */
export interface FoundEndUser {
  readonly appId: number
  readonly externalRef: string
}

export interface FindOptions {
  /**
   * `2026-11-21` or `21/11/2026`: the text is an amount of money of that day, in any time zone, or a bank account that received it. With a
   * time, `21/11/2026 14:05`, about that time in Vietnam, as banks print it on receipts.
   */
  readonly on?: string
  /** Only of this app. */
  readonly appId?: number
}

/** The kinds whose ids have a prefix: `cus_5`. */
const ID_KINDS: Partial<Record<FoundKind, IdKind>> = {
  customer: 'cus',
  plan: 'plan',
  price: 'price',
  checkout: 'cs',
  event: 'evt',
}
const LINK = /(?:\/(?:checkout|renew)\/|^)([0-9a-f]{64})(?![0-9a-f])/
/** The Message-ID of a reminder or a receipt, as mail servers log it. */
const OWN_MAIL = /^<?(reminder|receipt)\.(\d{1,15})[\d.]*@[^\s@]+$/
const MAX_TEXT = 2000
/** How many of an app's newest customers are searched by name; the second number if the first finds too few. No index serves part of a name. */
const NAMES_READ = [5000, 100_000]
/** Depending on the time zone of a bank, its day begins up to 14 hours before the same day in UTC, and ends up to 12 hours after it. */
const EARLIEST_ZONE_MS = 14 * HOUR_MS
const LATEST_ZONE_MS = 12 * HOUR_MS
/** Vietnam has had this zone since 1975. */
const VIETNAM_MS = 7 * HOUR_MS
/** Clocks differ a little, and a bank's mail may take a while. */
const BEFORE_MS = 10 * MINUTE_MS
const AFTER_MS = 2 * HOUR_MS
/** An account number, or its last digits behind what hides the others. */
const ACCOUNT = /^([x*•.…]*)(\d{4,19})$/i
const WITH_TIME = /^(\S+)[ T](\d{1,2})[:h](\d{2})(?::\d{2})?$/

/**
 * What a text names, of all apps: an id, an end user, an e-mail address, a part of a customer's name, a transfer code or another text of a
 * transfer, a reference of a bank or a provider, an event, a link of a checkout or a renewal, the Message-ID of a mail of ours; with `on`
 * an amount of money. A transfer code with one typo finds those that it may mean (R345). Returns the newest matches, `MAX_PER_KIND` of each
 * kind at most, the end users that they are about, and what to do about unmatched money. Throws `invalid_request` for a text that cannot be
 * searched, and for an amount without `on` that names nothing else.
 */
export async function find(
  ctx: Context,
  text: string,
  options: FindOptions = {},
): Promise<{ matches: Match[]; endUsers: FoundEndUser[]; nextSteps: NextStep[]; isNear: boolean }> {
  const exact = await search(ctx, text, options)
  const isExact = exact.length > 0 || options.on !== undefined
  const found = isExact ? exact : await findByCodes(ctx.db, options.appId ?? null, nearCodes(text))
  return {
    isNear: !isExact && found.length > 0,
    matches: found.map(present),
    endUsers: await endUsersOf(ctx, found),
    nextSteps: await stepsOfMails(ctx, found),
  }
}

function nearCodes(text: string): string[] {
  return listProviders().flatMap(({ codes }) => codes?.near(text) ?? [])
}

/** What to do about unmatched money that was found. */
async function stepsOfMails(ctx: Context, found: readonly Found[]): Promise<NextStep[]> {
  const mails = found.filter(({ kind }) => kind === 'bank mail')
  const listed = await Promise.all(mails.map(({ id }) => listedMail(ctx, id)))
  const fits = listed.map((mail) => mail && fitOf(mail)).filter((fit) => fit !== null)
  return fits.map(matchStep)
}

/** As `find`, but returns the rows, without near codes and next steps. */
export async function search(ctx: Context, text: string, options: FindOptions = {}): Promise<Found[]> {
  const { on } = options
  const appId = options.appId ?? null
  const given = text.trim()
  if (given === '' || given.length > MAX_TEXT) throw invalidField('text', 'must have 1 to 2000 characters')
  const scope = { appId, apps: appId === null ? (await listApps(ctx.db)).map(({ id }) => id) : [appId] }
  return on === undefined ? findNamed(ctx, scope, given) : findMoney(ctx, scope, given, on)
}

interface Scope {
  /** Only this app; null searches all, and what belongs to none. */
  readonly appId: number | null
  readonly apps: readonly number[]
}

/** Finds a link or Message-ID by its form. An end user's id or an address may have the same form, so an empty result is not final. */
async function findByShape(db: Queries, appId: number | null, given: string): Promise<Found[]> {
  const token = LINK.exec(given)?.[1]
  if (token !== undefined) return findByToken(db, appId, token)
  const [, kind, number] = OWN_MAIL.exec(given) ?? []
  return kind === undefined ? [] : findByMail(db, appId, kind as 'reminder' | 'receipt', Number(number))
}

async function findNamed(ctx: Context, { appId, apps }: Scope, given: string): Promise<Found[]> {
  const shaped = await findByShape(ctx.db, appId, given)
  if (shaped.length > 0) return shaped
  const providers = listProviders().map(({ code }) => code)
  const banks = BANK_READERS.map(({ code }) => code)
  const quoted = listProviders().flatMap(({ codes }) => codes?.findIn(given) ?? [])
  const codes = [given.replaceAll(' ', '').toUpperCase(), ...quoted]
  const numbered = [...(await findNumbered(ctx, appId, given)), ...(await findQuoted(ctx, appId, given))]
  const named = numbered.length > 0 ? [] : await customersNamed(ctx, apps, given)
  const found = [...numbered, ...(await findByText(ctx.db, appId, given, { apps, providers, banks, named, codes }))]
  if (found.length === 0 && isWrittenAmount(given))
    throw invalidField('on', 'is missing: an amount of money needs its day, such as --on 2026-11-21')
  return found
}

/** The newest customers whose names have every word of the text in them, without regard to case and diacritics. */
async function customersNamed(ctx: Context, apps: readonly number[], given: string): Promise<number[]> {
  const words = wordsOfName(given)
  if (words.length === 0) return []
  const found: number[] = []
  for (const appId of apps) {
    let ofApp: number[] = []
    for (const most of NAMES_READ) {
      const rows = await listCustomerNames(ctx.db, appId, most)
      ofApp = rows.filter(({ name }) => hasWords(foldName(name), words)).map(({ id }) => id)
      if (rows.length < most || ofApp.length >= MAX_PER_KIND) break
    }
    found.push(...ofApp.slice(0, MAX_PER_KIND))
  }
  return found
}

function hasWords(folded: string, words: readonly string[]): boolean {
  return words.every((word) => folded.includes(word))
}

/** `cus_5`, or `17`: a transaction, a payment or a bank mail. */
async function findNumbered(ctx: Context, appId: number | null, given: string): Promise<Found[]> {
  for (const [kind, prefix] of Object.entries(ID_KINDS) as [FoundKind, IdKind][]) {
    const number = parseId(prefix, given)
    if (number !== null) return findById(ctx.db, appId, kind, number)
  }
  const number = parseNumericId(given)
  if (number === null) return []
  const kinds = ['transaction', 'payment', 'bank mail'] as const
  return (await Promise.all(kinds.map((kind) => findById(ctx.db, appId, kind, number)))).flat()
}

/** The transactions that the text of a transfer names by their ids: `PG17`. */
async function findQuoted(ctx: Context, appId: number | null, given: string): Promise<Found[]> {
  const ids = listProviders().flatMap((provider) => provider.transactionsIn?.(given) ?? [])
  return findTransactions(ctx.db, appId, ids)
}

async function findMoney(ctx: Context, { appId, apps }: Scope, given: string, on: string): Promise<Found[]> {
  const spans = spansOf(on)
  if (!spans) throw invalidField('on', 'must be a day, such as 2026-11-21, 21/11/2026 or 21/11/2026 14:05')
  const accounts = await accountsWritten(ctx, given)
  if (accounts.length > 0) return findByAccount(ctx.db, appId, accounts, spans.received)
  const meant = amountsIn(given)
  if (meant.length === 0)
    throw invalidField('text', 'must be an amount of money, such as 99,000, 99k or $14.99, or a bank account of yours')
  const amounts = [...new Set(meant.map(({ amount }) => amount))]
  const found = await findByAmount(ctx.db, appId, amounts, apps, spans.received, spans.day)
  return found.filter((row) => meant.some((one) => isMeant(one, row)))
}

/** Our bank accounts of this number, which a receipt may show by its last digits alone: `xxxx9012`. */
async function accountsWritten(ctx: Context, given: string): Promise<number[]> {
  const [, mask = '', digits = ''] = ACCOUNT.exec(given.replaceAll(/[\s-]/g, '')) ?? []
  if (digits === '') return []
  const rows = await listBankAccounts(ctx.db)
  return rows.filter(({ number }) => (mask === '' ? number === digits : number.endsWith(digits))).map(({ id }) => id)
}

/** The day in any time zone, and when the money arrived, which may be a shorter time; null if the text is no day. */
function spansOf(on: string): { day: Span; received: Span } | null {
  const [, written = on.trim(), hours = '', minutes = ''] = WITH_TIME.exec(on.trim()) ?? []
  const begin = parseDay(written)
  if (!begin || Number(hours) > 23 || Number(minutes) > 59) return null
  const start = asRealTime(begin)
  const day = { from: addMs(start, -EARLIEST_ZONE_MS), until: addMs(start, DAY_MS + LATEST_ZONE_MS) }
  if (hours === '') return { day, received: day }
  const at = addMs(start, Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS - VIETNAM_MS)
  return { day, received: { from: addMs(at, -BEFORE_MS), until: addMs(at, AFTER_MS) } }
}

function present({ kind, id, appId, externalRef, amount, currency, state, at, eventType }: Found): Match {
  const prefix = ID_KINDS[kind]
  return {
    kind,
    id: prefix ? formatId(prefix, id) : String(id),
    app_id: appId,
    external_ref: externalRef,
    amount,
    currency: amount === null ? null : currency,
    state,
    at: formatTimestampOrNull(at),
    event_type: eventType,
  }
}

/** The end users that things are about. */
export async function endUsersOf(ctx: Context, found: readonly Found[]): Promise<FoundEndUser[]> {
  const users = new Map<string, FoundEndUser>()
  for (const { kind, id, appId, externalRef } of found) {
    if (appId === null) continue
    const refs = kind === 'customer' ? await listEndUsersOfCustomer(ctx.db, appId, id) : []
    for (const ref of externalRef === null ? refs : [externalRef, ...refs])
      users.set(`${appId} ${ref}`, { appId, externalRef: ref })
  }
  return [...users.values()]
}
