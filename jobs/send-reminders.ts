import { sendDueReminders } from '#renewals/send-due-reminders.ts'
import { runJob, sweep } from './run-job.ts'

/** Mails before a period ends, and the notice after. */
await runJob(sweep(sendDueReminders))
