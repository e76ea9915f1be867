import { deleteOldRows } from '#operations/delete-old-rows.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { repeatedly, runJob } from './run-job.ts'

/** Stores what every read computes already, and removes rows that are kept for a time only. */
await runJob(
  repeatedly(async (ctx, options) => ({
    expired: await expireDue(ctx, options),
    ...(await deleteOldRows(ctx, options)),
  })),
)
