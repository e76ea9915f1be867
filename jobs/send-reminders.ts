import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { runJob, sweep } from './run-job.ts'

/** Mails before a period ends, the notice after, and receipts. */
await runJob(
  sweep(async (ctx, options) => {
    await sendDueReceipts(ctx, options)
    return sendDueReminders(ctx, options)
  }),
)
