import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { DAY_MS, addMs, formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import type { AlertKind } from './kinds.ts'
import { listAlertsSince, listMutes } from './store.ts'

/** An alert as operators see it. */
export interface ShownAlert {
  readonly kind: AlertKind
  readonly subject: string
  readonly opened_at: string
  readonly closed_at: string | null
  /** When the first message about it was sent. */
  readonly notified_at: string | null
  /** Until when its kind is muted. */
  readonly muted_until: string | null
}

const LISTED_MS = 30 * DAY_MS
const MAX_LISTED = 1000

/** The open alerts, then those that were closed in the last thirty days; the newest first. */
export async function listAlerts(ctx: Context): Promise<ShownAlert[]> {
  const now = await databaseNow(ctx, ctx.db)
  const mutes = await listMutes(ctx.db, now)
  const alerts = await listAlertsSince(ctx.db, addMs(now, -LISTED_MS), MAX_LISTED)
  return alerts.map(({ kind, subject, openedAt, closedAt, notifiedAt }) => ({
    kind,
    subject,
    opened_at: formatTimestamp(openedAt),
    closed_at: formatTimestampOrNull(closedAt),
    notified_at: formatTimestampOrNull(notifiedAt),
    muted_until: formatTimestampOrNull(mutes.get(kind) ?? null),
  }))
}
