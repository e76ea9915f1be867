import { byStatement } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { chargeAttempts, type ClaimedEvent } from './claims/store.ts'

/** Maximum number of attempts charged in one statement. */
const GROUP_SIZE = 200

/** Charges attempts when their requests begin. Grouping them makes it cheap. */
export interface Charger {
  /**
   * Resolves with true when the attempt is charged and its request may begin. False if another sender took over the lease, or the database
   * is unreachable.
   */
  charge(event: ClaimedEvent): Promise<boolean>
}

interface Waiting {
  readonly event: ClaimedEvent
  readonly answer: (mayBegin: boolean) => void
}

export function openCharger(ctx: Context): Charger {
  const waiting: Waiting[] = []
  let isWriting = false

  const writeGroup = async (group: readonly Waiting[]): Promise<void> => {
    const charged = await chargeAll(
      ctx,
      group.map(({ event }) => event),
    )
    for (const { event, answer } of group) answer(charged.has(event))
  }

  const writeAll = async (): Promise<void> => {
    isWriting = true
    // Attempts of this iteration of the event loop share the statement. Those that arrive while it runs share the next.
    await new Promise(setImmediate)
    while (waiting.length > 0) await writeGroup(waiting.splice(0, GROUP_SIZE))
    isWriting = false
  }

  return {
    charge: (event) =>
      new Promise((answer) => {
        waiting.push({ event, answer })
        if (!isWriting) void writeAll()
      }),
  }
}

/** Returns the events whose attempts were charged. */
async function chargeAll(ctx: Context, events: readonly ClaimedEvent[]): Promise<ReadonlySet<ClaimedEvent>> {
  const leases = Map.groupBy(events, ({ lease }) => lease)
  const charging = [...leases].map(([lease, ofLease]) => chargeLease(ctx, lease, ofLease))
  return new Set((await Promise.all(charging)).flat())
}

async function chargeLease(ctx: Context, lease: number, events: readonly ClaimedEvent[]): Promise<ClaimedEvent[]> {
  const eventIds = events.map(({ id }) => id)
  try {
    const charged = new Set(await byStatement(ctx, (db) => chargeAttempts(db, lease, eventIds)))
    return events.filter(({ id }) => charged.has(id))
  } catch (error) {
    ctx.log.error({ error, attempts: events.length }, 'delivery attempts cannot be charged; their leases will expire')
    return []
  }
}
