import { checkoutUrl } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { renewalLink } from '#mails/reminders/renewal-link.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { findSubscription } from '#subscriptions/store.ts'
import { endUsersOf, search, type FindOptions } from './find.ts'
import { findCheckoutToken } from './store.ts'

/** A page for payers. Whoever has its address may pay. */
export interface FoundPage {
  /** `checkout of transaction 17`, `renewal of user-42` */
  readonly page: string
  readonly url: string
}

/**
 * The page of what a text names, as `find` understands it: the checkout of a checkout or transaction, the renewal of an end user or
 * customer; `api` is the reference of the API. Throws `invalid_request` if there is no page, or several: then it names each with its
 * address, since a number may be an end user and a transaction of one app.
 */
export async function findPage(ctx: Context, text: string, options: FindOptions = {}): Promise<FoundPage> {
  const { baseUrl } = ctx.config
  if (text === 'api') return { page: 'reference of the API', url: `${baseUrl}/docs` }
  const found = await search(ctx, text, options)
  const pages = new Map<string, FoundPage>()
  for (const one of found) {
    const token = await findCheckoutToken(ctx.db, one)
    const name = one.kind === 'checkout' ? formatId('cs', one.id) : `transaction ${one.id}`
    if (token !== null) pages.set(token, { page: `checkout of ${name}`, url: checkoutUrl(baseUrl, token) })
  }
  const people = found.filter(({ kind }) => kind === 'end user' || kind === 'customer')
  for (const { appId, externalRef } of await endUsersOf(ctx, people)) {
    const subscription = await findSubscription(ctx.db, appId, externalRef)
    if (!subscription?.currentPeriodEnd) continue
    const { renewalToken } = subscription
    pages.set(renewalToken, {
      page: `renewal of ${externalRef} (app ${appId})`,
      url: renewalLink(baseUrl, renewalToken),
    })
  }
  const [first, ...others] = pages.values()
  if (!first) throw new AppError('invalid_request', 'this has no page; see billing-cli find')
  if (others.length === 0) return first
  const named = [first, ...others].map(({ page, url }) => `${page} ${url}`).join(', ')
  throw new AppError('invalid_request', `this names several pages: ${named}`)
}
