import { listApps } from '#apps/store.ts'
import { BANK_READERS } from '#bank-mail/banks/readers.ts'
import { fitOf } from '#bank-mail/fits.ts'
import { listedMail } from '#bank-mail/list-bank-mails.ts'
import type { Context } from '#context.ts'
import type { Position } from '#db/conditions.ts'
import { listProviders } from '#providers/providers.ts'
import { invalidField } from '#shared/errors.ts'
import { formatId, parseId, parseNumericId, type IdKind } from '#shared/ids.ts'
import { DAY_MS, HOUR_MS, addMs, asRealTime, formatTimestampOrNull, parseDay } from '#shared/time.ts'
import { amountsIn, isMeant, isWrittenAmount } from './amounts.ts'
import { foldName, wordsOfName } from './names.ts'
import { matchStep, type NextStep } from './next-steps.ts'
import {
  findByAmount,
  findById,
  findByMail,
  findByText,
  findByToken,
  listCustomerNames,
  listEndUsersOfCustomer,
  MAX_PER_KIND,
  type Found,
  type FoundKind,
} from './store.ts'

export { MAX_PER_KIND } from './store.ts'

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
  /** `2026-11-21` or `21/11/2026`: the text is an amount of money of that day, in whatever time zone. */
  readonly on?: string
  /** Only of this app. */
  readonly appId?: number
}

const PUBLIC: Partial<Record<FoundKind, IdKind>> = {
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
/** Of each app, the newest customers whose names are read, so many at a time: no index serves a part of a name. */
const MAX_NAMES = 100_000
const NAMES_AT_ONCE = 5000
/** The day of a bank's statement begins at most so long before it does in UTC, and ends at most so long after. */
const EARLIEST_ZONE_MS = 14 * HOUR_MS
const LATEST_ZONE_MS = 12 * HOUR_MS

/**
 * What a text names, of all apps: an id, an end user, an e-mail address, a part of a customer's name, a transfer code, a reference of a
 * bank or a provider, an event, a link of a checkout or a renewal, the Message-ID of a mail of ours; with `on` an amount of money. Returns the newest matches,
 * `MAX_PER_KIND` of each kind at most, the end users that they are about, and what to do about unmatched money. Throws `invalid_request` for a text that cannot be
 * searched, and for an amount without `on` that names nothing else.
 */
export async function find(
  ctx: Context,
  text: string,
  options: FindOptions = {},
): Promise<{ matches: Match[]; endUsers: FoundEndUser[]; nextSteps: NextStep[] }> {
  const found = await search(ctx, text, options)
  return {
    matches: found.map(present),
    endUsers: await endUsersOf(ctx, found),
    nextSteps: await stepsOfMails(ctx, found),
  }
}

/** What to do about unmatched money that was found. */
async function stepsOfMails(ctx: Context, found: readonly Found[]): Promise<NextStep[]> {
  const mails = found.filter(({ kind }) => kind === 'bank mail')
  const listed = await Promise.all(mails.map(({ id }) => listedMail(ctx, id)))
  const fits = listed.map((mail) => mail && fitOf(mail)).filter((fit) => fit !== null)
  return fits.map(matchStep)
}

/** As `find`, with the numbers of the rows. */
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

async function findNamed(ctx: Context, { appId, apps }: Scope, given: string): Promise<Found[]> {
  const token = LINK.exec(given)?.[1]
  if (token !== undefined) return findByToken(ctx.db, appId, token)
  const [, kind, number] = OWN_MAIL.exec(given) ?? []
  if (kind !== undefined) return findByMail(ctx.db, appId, kind as 'reminder' | 'receipt', Number(number))
  const providers = listProviders().map(({ code }) => code)
  const banks = BANK_READERS.map(({ code }) => code)
  const numbered = await findNumbered(ctx, appId, given)
  const named = numbered.length > 0 ? [] : await customersNamed(ctx, apps, given)
  const found = [...numbered, ...(await findByText(ctx.db, appId, given, { apps, providers, banks, named }))]
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
    const ofApp: number[] = []
    for (let read = 0, from: Position | null = null; read < MAX_NAMES; read += NAMES_AT_ONCE) {
      const rows = await listCustomerNames(ctx.db, appId, from, NAMES_AT_ONCE)
      for (const { id, name } of rows) {
        const folded = foldName(name)
        if (words.every((word) => folded.includes(word))) ofApp.push(id)
      }
      from = rows.at(-1) ?? null
      if (rows.length < NAMES_AT_ONCE || ofApp.length >= MAX_PER_KIND) break
    }
    found.push(...ofApp.slice(0, MAX_PER_KIND))
  }
  return found
}

/** `cus_5`, or `17`: a transaction, a payment or a bank mail. */
async function findNumbered(ctx: Context, appId: number | null, given: string): Promise<Found[]> {
  for (const [kind, prefix] of Object.entries(PUBLIC) as [FoundKind, IdKind][]) {
    const number = parseId(prefix, given)
    if (number !== null) return findById(ctx.db, appId, kind, number)
  }
  const number = parseNumericId(given)
  if (number === null) return []
  const kinds = ['transaction', 'payment', 'bank mail'] as const
  return (await Promise.all(kinds.map((kind) => findById(ctx.db, appId, kind, number)))).flat()
}

async function findMoney(ctx: Context, { appId, apps }: Scope, given: string, on: string): Promise<Found[]> {
  const day = parseDay(on)
  if (!day) throw invalidField('on', 'must be a day, such as 2026-11-21 or 21/11/2026')
  const meant = amountsIn(given)
  if (meant.length === 0) throw invalidField('text', 'must be an amount of money, such as 99,000, 99k or $14.99')
  const begin = asRealTime(day)
  const time = { from: addMs(begin, -EARLIEST_ZONE_MS), until: addMs(begin, DAY_MS + LATEST_ZONE_MS) }
  const amounts = [...new Set(meant.map(({ amount }) => amount))]
  const found = await findByAmount(ctx.db, appId, amounts, apps, time)
  return found.filter((row) => meant.some((one) => isMeant(one, row)))
}

function present({ kind, id, appId, externalRef, amount, currency, state, at, eventType }: Found): Match {
  const prefix = PUBLIC[kind]
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
