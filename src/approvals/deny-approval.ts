import { z } from 'zod'
import { command } from '#commands/command.ts'
import { noteField } from '#commands/operator-note.ts'
import { integer } from '#shared/validate.ts'
import { decidedBy, lockOpen } from './refund-limit.ts'
import { closeApproval, type Approval, type ApprovalStatus } from './store.ts'

const Decision = z.strictObject({
  approval_id: integer(1),
  note: noteField,
})

/**
 * Denies a waiting refund. The operator who requested it may deny it too. Throws `not_found`, and `invalid_request` if it was already
 * decided.
 */
export const denyApproval = ending('approval.deny', 'denied')

/** Marks a request stale because its payment or transaction has changed. */
export const expireApproval = ending('approval.expire', 'stale')

function ending(name: string, status: Exclude<ApprovalStatus, 'open' | 'granted'>) {
  return command({
    name,
    input: Decision,
    async run(tx, { approval_id: approvalId, note }): Promise<Approval> {
      const approval = await lockOpen(tx, approvalId)
      const decision = { status, ...decidedBy(tx, tx.caller, note) }
      await closeApproval(tx, approvalId, decision)
      const subject = `approval ${approvalId}`
      await tx.audit({ appId: approval.appId, subject, before: { status: 'open' }, after: { status }, reason: note })
      return { ...approval, ...decision, openKey: null }
    },
  })
}
