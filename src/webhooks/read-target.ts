import { secretPlace, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import { signingKeys, type SigningKeys } from './signature.ts'
import { listWebhookTargets, type WebhookTarget } from './store.ts'

/** The current address for an app's events, and the keys that sign them. */
export interface WebhookAddress {
  readonly url: string
  readonly keys: SigningKeys
}

/** `not_configured`: the app no longer has a webhook. `secret_unreadable`: its secret cannot be decrypted (lost key). */
export type TargetError = 'not_configured' | 'secret_unreadable'

/** Where an app's events go now, or why they go nowhere. */
export type DeliveryTarget =
  | { readonly kind: 'address'; readonly address: WebhookAddress }
  | { readonly kind: 'none'; readonly error: TargetError }

const NOT_CONFIGURED: DeliveryTarget = { kind: 'none', error: 'not_configured' }

/** Maximum age of a target: long enough for many attempts to share one query, and shorter than a request. */
const MAX_AGE_MS = 10
/** Maximum number of decrypted secrets in memory. */
const MAX_OPENED = 1000

interface Known {
  readonly target: DeliveryTarget
  readonly readAtMs: number
}

/** A query that begins soon, and the apps whose targets it reads. */
interface NextRead {
  readonly appIds: Set<number>
  readonly done: Promise<void>
}

/** Reads targets for the sender. Hundreds of attempts share a query; a `SharedRead` would send one for every 16. */
export class Targets {
  readonly #ctx: Context
  readonly #known = new Map<number, Known>()
  /** Keys by app and sealed secret: one that was moved to another app's row must not open. */
  readonly #opened = new BoundedMap<string, SigningKeys>(MAX_OPENED)
  #next: NextRead | null = null

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /** The app's current target, so that a secret is not used after its rotation. Returns no promise if it was just read. */
  of(appId: number): DeliveryTarget | Promise<DeliveryTarget> {
    const before = this.#known.get(appId)
    return before && performance.now() - before.readAtMs <= MAX_AGE_MS ? before.target : this.#readNow(appId)
  }

  async #readNow(appId: number): Promise<DeliveryTarget> {
    if (!this.#next) {
      const appIds = new Set<number>()
      this.#next = { appIds, done: this.#read(appIds) }
    }
    this.#next.appIds.add(appId)
    await this.#next.done
    return this.#known.get(appId)?.target ?? NOT_CONFIGURED
  }

  async #read(appIds: ReadonlySet<number>): Promise<void> {
    // Calls in this iteration of the event loop share the query.
    await new Promise(setImmediate)
    this.#next = null
    const readAtMs = performance.now()
    const rows = await listWebhookTargets(this.#ctx.db, [...appIds])
    for (const appId of appIds) this.#known.set(appId, { target: NOT_CONFIGURED, readAtMs })
    for (const row of rows) this.#known.set(row.appId, { target: this.#open(row), readAtMs })
  }

  #open({ appId, apiKey, webhookUrl, webhookSecret }: WebhookTarget): DeliveryTarget {
    if (webhookUrl === null || webhookSecret === null) return NOT_CONFIGURED
    try {
      const keys = this.#opened.getOrCreate(`${apiKey} ${webhookSecret}`, () =>
        openKeys(this.#ctx, webhookSecret, apiKey),
      )
      return { kind: 'address', address: { url: webhookUrl, keys } }
    } catch (error) {
      this.#ctx.log.error({ appId, reason: messageOf(error) }, 'the webhook secret of an app cannot be decrypted')
      return { kind: 'none', error: 'secret_unreadable' }
    }
  }
}

/** The keys of a sealed webhook secret. Throws if it cannot be decrypted. */
export function openKeys({ keyring }: Context, webhookSecret: string, apiKey: string): SigningKeys {
  return signingKeys(keyring.open(webhookSecret, secretPlace('webhook_secret', apiKey)))
}

/** Throws `invalid_request` if an app has no webhook address or secret. */
export function requireWebhook(app: App): void {
  if (app.webhookUrl === null) {
    throw new AppError(
      'invalid_request',
      `app ${app.id} has no webhook address: billing-cli app update ${app.id} --webhook-url URL`,
    )
  }
  requireWebhookSecret(app)
}

/** The app's sealed webhook secret. Throws `invalid_request` if it has none. */
export function requireWebhookSecret({ id, webhookSecret }: App): string {
  if (webhookSecret !== null) return webhookSecret
  throw new AppError('invalid_request', `app ${id} has no webhook secret: billing-cli app rotate-webhook-secret ${id}`)
}
