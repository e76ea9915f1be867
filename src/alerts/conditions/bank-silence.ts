import type { AlertCondition } from '#alerts/kinds.ts'
import { countMailsByDay, listQuietAccounts } from '#alerts/store.ts'
import type { Context } from '#context.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { DAYS_READ, isSilent } from './decide-silence.ts'
import type { Evaluation } from './evaluation.ts'

/** Accounts of live apps that got no mail on a day on which they usually do. */
export async function bankSilent({ db }: Context, { now }: Evaluation): Promise<AlertCondition[]> {
  const quiet = await listQuietAccounts(db, addMs(now, -DAY_MS))
  const found: AlertCondition[] = []
  for (const { accountId, bank } of quiet) {
    const days = await countMailsByDay(db, accountId, now, addMs(now, -DAYS_READ * DAY_MS))
    const [newest] = days
    const counts = new Map(days.map(({ daysAgo, mails }) => [daysAgo, mails]))
    const age = Math.max(0, ...counts.keys()) + 1
    const byDay = Array.from({ length: age }, (_, day) => counts.get(day) ?? 0)
    if (!newest || !isSilent(byDay)) continue
    found.push({
      kind: 'bank_silent',
      subject: `bank account ${accountId}`,
      text: `no mail of ${bank} has arrived for bank account ${accountId}, which usually gets mails on such days: check the mailbox, its forwarding and the relay (billing-cli doctor)`,
      since: newest.last,
    })
  }
  return found
}
