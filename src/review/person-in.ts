import type { Context } from '#context.ts'
import { findPersonOf } from './store.ts'
import { mailIn, type ReviewItem } from './read-review.ts'

/** The reference or address to give `find` for the person in a case; null if the case names nobody. */
export async function personIn({ db }: Context, item: ReviewItem): Promise<string | null> {
  const id = Number(String(item.id).replace(/^evt_/, ''))
  return findPersonOf(db, item.kind === 'unconfirmed_mail' ? mailIn(item) : item.kind, id)
}
