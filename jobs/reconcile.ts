import { reconcilePayments } from '#providers/reconcile-payments.ts'
import { finishPendingWrites } from '#subscriptions/finish-pending-writes.ts'
import { runJob, sweep } from './run-job.ts'

/** What a lost notification or a crash left open: pending payments are looked up, realtime nodes are written. */
await runJob(
  sweep(async (ctx, { signal, isHourly }) => {
    // At the same time: a database of one app that hangs must not hold back the look-ups of all.
    const [nodes, counts] = await Promise.all([
      finishPendingWrites(ctx, { signal }),
      reconcilePayments(ctx, { signal, withRefundLists: isHourly }),
    ])
    return { ...counts, nodesWritten: nodes.written, nodesFailed: nodes.failed }
  }),
)
