import type { NotifiedApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Tx } from '#commands/transaction.ts'
import { queueRealtimeWrite } from '#realtime/store.ts'
import { writeNode, type WriteOutcome } from '#realtime/write-node.ts'
import type { NodeState, WriteReason } from '#realtime/node.ts'
import { findSubscriptionById, findSubscriptionOfEndUser, type Subscription } from './store.ts'

/** Queues the write of the realtime node in the change's transaction; the caller waits for the write itself after the commit. */
export async function queueNode(tx: Tx, app: NotifiedApp, subscription: Subscription): Promise<void> {
  const subscriptionId = subscription.id
  await queueRealtimeWrite(tx, { appId: app.id, subscriptionId, revision: subscription.revision })
  tx.afterCommit(async () => {
    await writeNodeOf(tx.ctx, app, subscriptionId, 'change')
  })
}

/** Queues the node write again after a duplicate report (R92). */
export async function rewriteNode(tx: Tx, app: NotifiedApp, endUserId: number): Promise<void> {
  if (app.realtimeDatabaseUrl === null) return
  const subscription = await findSubscriptionOfEndUser(tx, endUserId)
  if (subscription) await queueNode(tx, app, subscription)
}

/** `writeNode` with what the subscription's row says at the moment of the write. */
export async function writeNodeOf(
  ctx: Context,
  app: NotifiedApp,
  subscriptionId: number,
  reason: WriteReason,
): Promise<WriteOutcome> {
  const load = async (): Promise<NodeState | null> => {
    const subscription = await findSubscriptionById(ctx.db, subscriptionId)
    return subscription && { externalRef: subscription.externalRef, currentPeriodEnd: subscription.currentPeriodEnd }
  }
  return writeNode(ctx, { app, subscriptionId, load }, reason)
}
