import { listApps } from '#apps/store.ts'
import { BANK_READERS } from '#bank-mail/banks/readers.ts'
import type { Context } from '#context.ts'
import { listProviders } from '#providers/providers.ts'
import { invalidField } from '#shared/errors.ts'
import { formatId, parseId, parseNumericId, type IdKind } from '#shared/ids.ts'
import { DAY_MS, HOUR_MS, addMs, asRealTime, formatTimestampOrNull, parseTimestamp } from '#shared/time.ts'
import {
  findByAmount,
  findById,
  findByMail,
  findByText,
  findByToken,
  listEndUsersOfCustomer,
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
}

/** An end user that the matches are about. */
export interface FoundEndUser {
  readonly appId: number
  readonly externalRef: string
}

export interface FindOptions {
  /** `2026-11-21`: the text is an amount of money of that day, in whatever time zone. */
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
/** The day of a bank's statement begins at most so long before it does in UTC, and ends at most so long after. */
const EARLIEST_ZONE_MS = 14 * HOUR_MS
const LATEST_ZONE_MS = 12 * HOUR_MS

/**
 * What a text names, of all apps: an id, an end user, an e-mail address, a transfer code, a reference of a bank or a provider, an event,
 * a link of a checkout or a renewal, the Message-ID of a mail of ours; with `on` an amount of money. Returns the newest matches,
 * `MAX_PER_KIND` of each kind at most, and the end users that they are about. Throws `invalid_request` for a text that cannot be
 * searched.
 */
export async function find(
  ctx: Context,
  text: string,
  options: FindOptions = {},
): Promise<{ matches: Match[]; endUsers: FoundEndUser[] }> {
  const found = await search(ctx, text, options)
  return { matches: found.map(present), endUsers: await endUsersOf(ctx, found) }
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
  const byText = await findByText(ctx.db, appId, given, { apps, providers, banks })
  return [...(await findNumbered(ctx, appId, given)), ...byText]
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
  const day = parseTimestamp(`${on} 00:00:00`)
  if (!day) throw invalidField('on', 'must be a day, such as 2026-11-21')
  const begin = asRealTime(day)
  const time = { from: addMs(begin, -EARLIEST_ZONE_MS), until: addMs(begin, DAY_MS + LATEST_ZONE_MS) }
  return findByAmount(ctx.db, appId, amountsOf(given), apps, time)
}

/** `99.000 đ` is 99000 of a currency without decimals; `10.50` is 1050 of one with two, and so may `10` be 1000. */
function amountsOf(given: string): number[] {
  const digits = given.replace(/[^0-9]/g, '')
  if (digits === '' || digits.length > 13) throw invalidField('text', 'must be an amount of money, such as 99,000')
  const amount = Number(digits)
  return /[.,]\d{2}(?!\d)/.test(given) ? [amount] : [amount, amount * 100]
}

function present({ kind, id, appId, externalRef, amount, currency, state, at }: Found): Match {
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
