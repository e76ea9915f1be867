import type { NotifiedApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Tx } from '#commands/transaction.ts'
import { queueRealtimeWrite } from '#realtime/store.ts'
import { writeNode } from '#realtime/write-node.ts'
import type { NodeState } from '#realtime/node.ts'
import { findSubscriptionById, findSubscriptionOfEndUser, type Subscription } from './store.ts'

/** Queues the write of the realtime node in the change's transaction; the caller waits for the write itself after the commit. */
export async function queueNode(tx: Tx, app: NotifiedApp, subscription: Subscription): Promise<void> {
  const subscriptionId = subscription.id
  await queueRealtimeWrite(tx, { appId: app.id, subscriptionId, revision: subscription.revision })
  tx.afterCommit(async () => {
    await writeNode(tx.ctx, { app, subscriptionId, load: () => loadNodeState(tx.ctx, subscriptionId) }, 'change')
  })
}

/** Queues the node write again after a duplicate report (R92). */
export async function rewriteNode(tx: Tx, app: NotifiedApp, endUserId: number): Promise<void> {
  if (app.realtimeDatabaseUrl === null) return
  const subscription = await findSubscriptionOfEndUser(tx, endUserId)
  if (subscription) await queueNode(tx, app, subscription)
}

/** The subscription as the node shows it, at the moment of the write. */
export async function loadNodeState(ctx: Context, subscriptionId: number): Promise<NodeState | null> {
  const subscription = await findSubscriptionById(ctx.db, subscriptionId)
  return subscription && { externalRef: subscription.externalRef, currentPeriodEnd: subscription.currentPeriodEnd }
}
