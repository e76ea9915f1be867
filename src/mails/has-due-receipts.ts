import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { listDueReceipts } from '#transactions/store.ts'

/** Whether a receipt is due now. In a file of its own, because the daemon's main thread loads nothing that sends mails. */
export async function hasDueReceipts(ctx: Context): Promise<boolean> {
  return (await listDueReceipts(ctx.db, await databaseNow(ctx, ctx.db), 1)).length > 0
}
