import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { loadConfig } from '#config/config.ts'
import { openContext } from '#open-context.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { answerOrders } from '../../bench/worker.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const opening = openContext({ config: loadConfig(), thread: 'trial', poolSize: 6 })

/** Sends all due reminders; returns the bytes of heap in use afterwards. */
answerOrders(async (): Promise<number> => {
  const { ctx } = await opening
  await sendDueReminders(ctx)
  collectGarbage()
  return process.memoryUsage().heapUsed
})
