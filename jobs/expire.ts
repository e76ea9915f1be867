import { deleteOldRows } from '#upkeep/delete-old-rows.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { runJob, sweep } from './run-job.ts'

/** Stores the expiry that every read computes, and removes expired rows every hour. */
await runJob(
  sweep(async (ctx, options) => ({
    expired: await expireDue(ctx, options),
    ...(options.isHourly ? await deleteOldRows(ctx, options) : {}),
  })),
)
