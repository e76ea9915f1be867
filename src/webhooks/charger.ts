import { byStatement } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { chargeAttempts, type ClaimedEvent } from './claims/store.ts'

/** Maximum number of attempts charged in one statement. */
const GROUP_SIZE = 200

interface Waiting {
  readonly event: ClaimedEvent
  readonly answer: (mayBegin: boolean) => void
}

/** Charges attempts when their requests begin. Grouping them makes it cheap. */
export class Charger {
  readonly #ctx: Context
  readonly #waiting: Waiting[] = []
  #isWriting = false

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /**
   * Resolves with true when the attempt is charged and its request may begin. False if another sender took over the lease, or the database
   * is unreachable.
   */
  charge(event: ClaimedEvent): Promise<boolean> {
    return new Promise((answer) => {
      this.#waiting.push({ event, answer })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    // Attempts of this iteration of the event loop share the statement. Those that arrive while it runs share the next.
    await new Promise(setImmediate)
    while (this.#waiting.length > 0) await this.#writeGroup(this.#waiting.splice(0, GROUP_SIZE))
    this.#isWriting = false
  }

  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    const charged = await chargeAll(
      this.#ctx,
      group.map(({ event }) => event),
    )
    for (const { event, answer } of group) answer(charged.has(event))
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
