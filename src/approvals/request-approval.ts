import { auditName, type Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { shellWord } from '#shared/shell-word.ts'
import { z } from 'zod'
import { ApprovalNeeded, limitWords, type RefundRequest } from './refund-limit.ts'
import { findOpenApproval, insertApproval, type Approval, type RefundTerms } from './store.ts'

/**
 * Runs work that may order a refund. If it needs a second operator, stores the request with its dry run's effects and throws `forbidden`,
 * naming the approval.
 */
export async function orStoreApproval<T>(
  ctx: Context,
  caller: Caller,
  work: () => Promise<T>,
  effects: (request: RefundRequest) => readonly string[] | Promise<readonly string[]>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApprovalNeeded)) throw error
    const { id } = await perform(ctx, caller, requestApproval, { effects: await effects(error.request) }, error.request)
    const why = limitWords(ctx.config.refundLimit, error.request)
    throw new AppError(
      'forbidden',
      `${why}: approval ${id} waits for another operator, who runs billing-cli approval grant ${id}`,
    )
  }
}

const requestApproval = command({
  name: 'approval.request',
  input: z.strictObject({ effects: z.array(z.string()) }),
  isRepeatable: true,
  async run(tx, { effects }, request: RefundRequest): Promise<Approval> {
    const { terms, seen, appId, transactionId, paymentId, amount, currency } = request
    const openKey = sha256Hex(JSON.stringify([terms, seen]))
    const isNew = await insertApproval(tx, {
      status: 'open',
      openKey,
      requestedBy: auditName(tx.caller),
      requestedAt: tx.now,
      command: commandLine(terms),
      terms,
      seen,
      effects,
      appId,
      transactionId,
      paymentId,
      amount,
      currency,
      decidedBy: null,
      decidedAt: null,
      note: null,
    })
    const approval = await findOpenApproval(tx, openKey)
    if (!approval) throw new AppError('service_unavailable', 'the request was decided meanwhile: try again')
    if (isNew)
      await tx.audit({
        appId,
        subject: `approval ${approval.id}`,
        after: { command: approval.command, amount, currency },
        reason: terms.note,
      })
    return approval
  },
})

/** The length of the column. */
const MAX_COMMAND = 1000

/** The terms as what follows `billing-cli`. Throws `invalid_request` if quoting makes the note too long. */
function commandLine({ of, id, amount, reference, note }: RefundTerms): string {
  const words = [
    of === 'transaction' ? `transaction resolve ${id} --action refund` : `payment refund ${id}`,
    ...(amount === null ? [] : [`--amount ${amount}`]),
    ...(reference === null ? [] : [`--reference ${shellWord(reference)}`]),
    `--note ${shellWord(note)}`,
  ]
  const line = words.join(' ')
  if (line.length > MAX_COMMAND) throw invalidField('note', 'has too many quotation marks: shorten it')
  return line
}
