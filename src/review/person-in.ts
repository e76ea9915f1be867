import type { Context } from '#context.ts'
import { findPersonOf } from './store.ts'
import type { ReviewItem } from './read-review.ts'

/** The reference or address to give `find` for the person in a case; null if the case names nobody. */
export async function personIn({ db }: Context, { kind, id, subject }: ReviewItem): Promise<string | null> {
  if (kind === 'refused_address') return subject.split(': ')[0] ?? null
  return findPersonOf(db, kind, Number(String(id).replace(/^evt_/, '')), subject.startsWith('receipt'))
}
