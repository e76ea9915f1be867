import { secretPlace } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { messageOf } from '#shared/errors.ts'
import { signingKeys, type SigningKeys } from './signature.ts'
import { listWebhookTargets, type WebhookTarget } from './store.ts'

/** The current address for an app's events, and the keys that sign them. */
export interface WebhookAddress {
  readonly url: string
  readonly keys: SigningKeys
}

/** `not_configured`: the app no longer has a webhook. `secret_unreadable`: its secret cannot be decrypted (lost key). */
export type DeliveryTarget = WebhookAddress | 'not_configured' | 'secret_unreadable'

/** Maximum age of a target: long enough for many attempts to share one query, and shorter than a request. */
const MAX_AGE_MS = 10
/** Maximum number of decrypted secrets in memory. */
const MAX_OPENED = 1000

export interface Targets {
  /** The app's current target, so that a secret is not used after its rotation. Returns no promise if it was just read. */
  of(appId: number): DeliveryTarget | Promise<DeliveryTarget>
}

interface Known {
  readonly target: DeliveryTarget
  readonly readAtMs: number
}

/** Reads targets for the sender. Concurrent calls share a query. */
export function openTargets(ctx: Context): Targets {
  const known = new Map<number, Known>()
  const opened = new Map<string, SigningKeys>()
  let next: { readonly appIds: Set<number>; readonly read: Promise<void> } | null = null

  const open = (row: WebhookTarget): DeliveryTarget => {
    if (row.webhookUrl === null || row.webhookSecret === null) return 'not_configured'
    try {
      const keys =
        opened.get(row.webhookSecret) ??
        signingKeys(ctx.keyring.open(row.webhookSecret, secretPlace('webhook_secret', row.apiKey)))
      if (opened.size > MAX_OPENED) opened.clear()
      opened.set(row.webhookSecret, keys)
      return { url: row.webhookUrl, keys }
    } catch (error) {
      ctx.log.error({ appId: row.appId, reason: messageOf(error) }, 'the webhook secret of an app cannot be decrypted')
      return 'secret_unreadable'
    }
  }

  const read = async (appIds: Set<number>): Promise<void> => {
    // Calls in this iteration of the event loop share the query.
    await new Promise(setImmediate)
    next = null
    const readAtMs = performance.now()
    const rows = await listWebhookTargets(ctx.db, [...appIds])
    for (const appId of appIds) known.set(appId, { target: 'not_configured', readAtMs })
    for (const row of rows) known.set(row.appId, { target: open(row), readAtMs })
  }

  const readNow = async (appId: number): Promise<DeliveryTarget> => {
    if (!next) {
      const appIds = new Set<number>()
      next = { appIds, read: read(appIds) }
    }
    next.appIds.add(appId)
    await next.read
    return known.get(appId)?.target ?? 'not_configured'
  }

  return {
    of(appId) {
      const before = known.get(appId)
      return before && performance.now() - before.readAtMs <= MAX_AGE_MS ? before.target : readNow(appId)
    },
  }
}
