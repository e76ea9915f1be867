import { z } from 'zod'
import { command } from '#commands/command.ts'

interface Decided {
  /** `failed webhook evt_17` */
  readonly subject: string
  readonly appId: number | null
}

/** Keeps why an operator did something by a command that takes no note itself. */
export const noteDecision = command({
  name: 'review.note',
  input: z.strictObject({ note: z.string().min(1).max(500), command: z.string().max(500) }),
  async run(tx, { note, command: line }, { subject, appId }: Decided): Promise<void> {
    await tx.audit({ subject, appId, after: { command: line }, reason: note })
  },
})
