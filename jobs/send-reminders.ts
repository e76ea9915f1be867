import { sendDueReminders } from '#renewals/send-due-reminders.ts'
import { repeatedly, runJob } from './run-job.ts'

/** Mails before a period ends, and the notice after. */
await runJob(repeatedly(sendDueReminders))
