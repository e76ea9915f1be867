import { z } from 'zod'
import { command } from '#commands/command.ts'
import { DAY_MS, addMs, formatTimestamp, formatTimestampOrNull, type RealTime } from '#shared/time.ts'
import { ALERT_KINDS, type AlertKind } from './kinds.ts'
import { listMutes, saveMute } from './store.ts'

const MAX_MUTE_MS = 30 * DAY_MS

/** Sends no messages about a kind of alert for a while. Conditions that still hold at its end are reported then. */
export const muteAlert = command({
  name: 'alert.mute',
  input: z.strictObject({
    kind: z.enum(ALERT_KINDS, `must be one of ${ALERT_KINDS.join(', ')}`),
    for_ms: z.number().int().min(0, 'must not be negative').max(MAX_MUTE_MS, 'must be at most 30d'),
  }),
  async run(tx, { kind, for_ms }): Promise<{ readonly kind: AlertKind; readonly mutedUntil: RealTime }> {
    const mutedUntil = addMs(tx.now, for_ms)
    const mutedBefore = (await listMutes(tx, tx.now)).get(kind) ?? null
    await saveMute(tx, kind, mutedUntil)
    await tx.audit({
      subject: `alert ${kind}`,
      before: { muted_until: formatTimestampOrNull(mutedBefore) },
      after: { muted_until: formatTimestamp(mutedUntil) },
    })
    return { kind, mutedUntil }
  },
})
