import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { findBankAccountByForwardCode, findSoleOwner } from '#bank-accounts/store.ts'
import { movementOf, recordUnallocatedMoney } from './book-money.ts'
import { contentHashOf } from './content-hash.ts'
import type { RelayAnswer } from './mail-answer.ts'
import { forwardCodeIn, type RelayedMail } from './envelope.ts'
import type { MailNotRead } from './mail-reader.ts'
import { countDeferredMails, insertBankMail } from './store.ts'

/** How often all daemons together defer the same content before they refuse it. */
const MAX_DEFERRALS = 2

/**
 * Defers a mail that could not be read, because this machine may have been busy; the relay sends it again. If the mail itself may be the
 * cause, the third time it is `rejected`/`untrusted_sender`, and operators see it as unreadable (R198).
 */
export async function deferMail(
  ctx: Context,
  mail: RelayedMail,
  { message, mayBeCausedByMail }: MailNotRead,
): Promise<RelayAnswer | { readonly status: 'deferred' }> {
  ctx.log.warn({ bytes: mail.raw.length, cause: message }, 'a bank mail could not be read')
  if (!mayBeCausedByMail) return { status: 'deferred' }
  const answer = await perform(ctx, provider('bank mail'), deferOne, undefined, mail)
  ctx.count('bank_mails_total', { status: answer.status, reason: answer.status === 'rejected' ? answer.reason : '' })
  return answer
}

const deferOne = command({
  name: 'bank-mail.defer',
  input: nothing,
  async run(tx, _input, mail: RelayedMail) {
    const contentHash = contentHashOf(mail.raw)
    const isLast = (await countDeferredMails(tx, contentHash)) >= MAX_DEFERRALS
    const code = forwardCodeIn(mail.envelopeTo)
    const account = code === null ? null : await findBankAccountByForwardCode(tx, code)
    const isReviewed = isLast && (account !== null || tx.ctx.config.env === 'development')
    const bankAccountId = account?.id ?? null
    const unread = { bank: null, bankReference: null, bankAccountId, contentHash }
    const waiting = isReviewed
      ? await recordUnallocatedMoney(tx, {
          reference: (await movementOf(tx, unread)).reference,
          amount: null,
          bankAccountId,
          appId: bankAccountId === null ? null : await findSoleOwner(tx, bankAccountId),
          paidAt: tx.now,
        })
      : null
    await insertBankMail(tx, {
      receivedAt: tx.now,
      messageId: null,
      messageIdHash: null,
      contentHash,
      bank: null,
      bankReference: null,
      amount: null,
      transferCode: null,
      status: isLast ? 'rejected' : 'deferred',
      reason: isLast ? 'untrusted_sender' : 'unreadable',
      appId: null,
      bankAccountId,
      transactionId: null,
      bookedAt: null,
      review: waiting?.isWaiting === true ? 'unreadable' : null,
      paymentId: waiting?.paymentId ?? null,
      matchedAt: null,
      closedAt: null,
      forwarding: null,
    })
    return isLast ? REFUSED : DEFERRED
  },
})

const REFUSED = { status: 'rejected', reason: 'untrusted_sender' } as const
const DEFERRED = { status: 'deferred' } as const
