import { byStatement } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { countBegunAttempts, type ClaimedEvent } from './claims/store.ts'

/** Maximum number of attempts counted in one statement. */
const GROUP_SIZE = 200

interface Waiting {
  readonly event: ClaimedEvent
  readonly answer: (mayBegin: boolean) => void
}

/** Counts attempts when their requests begin. Grouping them makes it cheap. */
export class AttemptCounter {
  readonly #ctx: Context
  readonly #waiting: Waiting[] = []
  #isWriting = false

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /**
   * Resolves with true when the attempt is counted and its request may begin. False if another sender took over the lease, or the database
   * is unreachable.
   */
  count(event: ClaimedEvent): Promise<boolean> {
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
    const counted = await countAll(
      this.#ctx,
      group.map(({ event }) => event),
    )
    for (const { event, answer } of group) answer(counted.has(event))
  }
}

/** Returns the events whose attempts were counted. */
async function countAll(ctx: Context, events: readonly ClaimedEvent[]): Promise<ReadonlySet<ClaimedEvent>> {
  const leases = Map.groupBy(events, ({ lease }) => lease)
  const counting = [...leases].map(([lease, ofLease]) => countForLease(ctx, lease, ofLease))
  return new Set((await Promise.all(counting)).flat())
}

async function countForLease(ctx: Context, lease: number, events: readonly ClaimedEvent[]): Promise<ClaimedEvent[]> {
  const eventIds = events.map(({ id }) => id)
  try {
    const counted = new Set(await byStatement(ctx, (db) => countBegunAttempts(db, lease, eventIds)))
    return events.filter(({ id }) => counted.has(id))
  } catch (error) {
    ctx.log.error({ error, attempts: events.length }, 'delivery attempts cannot be counted; their leases will expire')
    return []
  }
}
