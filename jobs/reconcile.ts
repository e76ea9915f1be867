import { reconcilePayments } from '#providers/reconcile-payments.ts'
import { finishPendingWrites } from '#subscriptions/finish-pending-writes.ts'
import { repeatedly, runJob } from './run-job.ts'

/** What a lost notification or a crash left open: pending payments are looked up, realtime nodes are written. */
await runJob(
  repeatedly(async (ctx, options) => {
    const { written: nodesWritten, failed: nodesFailed } = await finishPendingWrites(ctx, options)
    return { ...(await reconcilePayments(ctx, options)), nodesWritten, nodesFailed }
  }),
)
