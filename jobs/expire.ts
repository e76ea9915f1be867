import { deleteOldRows } from '#operations/delete-old-rows.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { runJob, sweep } from './run-job.ts'

/** Stores what every read computes already, and each hour removes rows that are kept for a time only. */
await runJob(
  sweep(async (ctx, options) => ({
    expired: await expireDue(ctx, options),
    ...(options.isHourly ? await deleteOldRows(ctx, options) : {}),
  })),
)
