import { found } from '#shared/errors.ts'

/** Prefixes of the public identifiers; inside, an id is a number (R26). */
export type IdKind = 'plan' | 'price' | 'cus' | 'cs' | 'evt' | 'promo'

const NOUN: Record<IdKind, string> = {
  plan: 'plan',
  price: 'price',
  cus: 'customer',
  cs: 'checkout session',
  evt: 'event',
  promo: 'promotion',
}

/** `plan_12`. */
export function formatId(kind: IdKind, id: number): string {
  return `${kind}_${id}`
}

export function formatIdOrNull(kind: IdKind, id: number | null): string | null {
  return id === null ? null : formatId(kind, id)
}

/** The number of `plan_12`; null for `12`, `plan_012`, `plan_x` and anything beyond a safe integer. */
export function parseId(kind: IdKind, text: string): number | null {
  return text.startsWith(`${kind}_`) ? parseNumericId(text.slice(kind.length + 1)) : null
}

/** The number of `12`; null for anything else than plain decimal digits of a safe positive integer. */
export function parseNumericId(text: string): number | null {
  if (!/^[1-9]\d{0,15}$/.test(text)) return null
  const id = Number(text)
  return Number.isSafeInteger(id) ? id : null
}

/** A path id read strictly: what is not one names nothing, hence 404. */
export function requireId(kind: IdKind, text: string): number {
  return found(parseId(kind, text), NOUN[kind])
}
