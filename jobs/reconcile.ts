import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { finishPendingWrites } from '#subscriptions/finish-pending-writes.ts'
import { runJob, sweep } from './run-job.ts'

/** Completes what a lost notification or a crash left open: polls pending payments and writes realtime nodes. */
await runJob(
  sweep(async (ctx, { signal, isHourly }) => {
    // Together: one app's unresponsive realtime database must not delay the polls of all apps.
    const [nodes, counts] = await Promise.all([
      finishPendingWrites(ctx, { signal }),
      reconcilePayments(ctx, { signal, withRefundLists: isHourly }),
    ])
    return { ...counts, nodesWritten: nodes.written, nodesFailed: nodes.failed }
  }),
)
