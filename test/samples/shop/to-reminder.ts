// to-reminder.ts: moves the sandbox to three days before a user's period ends
import { formatTime, parseTime } from 'paygate-client'
import { paygate } from './paygate.ts'

const { current_period_end } = await paygate.subscriptions.get(process.argv[2] ?? '')
if (current_period_end === null) throw new Error('a lifetime purchase does not end')
const end = parseTime(current_period_end)
end.setUTCDate(end.getUTCDate() - 3)
const { now } = await paygate.testClock.advance({ now: formatTime(end) })
console.log(`it is ${now}`)
