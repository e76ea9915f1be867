import { loadConfig } from '#config/config.ts'
import { openContext } from '#open-context.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { TestClock } from '../support/context.ts'

// What `startSweep` starts: `node sweep-once.ts '2026-03-29 10:00:00' receipt`.
const { ctx, close } = await openContext({
  config: loadConfig(),
  thread: 'sweep-once',
  clock: new TestClock(process.argv[2]),
})
await (process.argv[3] === 'receipt' ? sendDueReceipts(ctx) : sendDueReminders(ctx))
await close()
