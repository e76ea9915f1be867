import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { dueOf, keptOf } from '#payments/balance.ts'
import { AppError } from '#shared/errors.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import { findBank } from './banks.ts'
import { receivingAccount } from './receiving-account.ts'
import { vietQrPayload } from './vietqr.ts'

/** All that a payer needs to transfer. Amounts in whole dong. */
export interface TransferDetails {
  /** Short code of the VietQR list. */
  readonly bank: string
  readonly bankName: string
  readonly accountNumber: string
  readonly accountHolder: string
  /** What is still due, which the QR code asks for. */
  readonly amountDue: number
  readonly amountReceived: number
  readonly amount: number
  readonly transferCode: string
  readonly qrPayload: string
}

/**
 * What the bank page of a transaction shows. Throws `payment_method_unavailable` if the app no longer has an account, or nothing is
 * due.
 */
export async function transferDetails(ctx: Context, transaction: PayableTransaction): Promise<TransferDetails> {
  const details = await findTransferDetails(ctx, transaction)
  if (!details) {
    throw new AppError('payment_method_unavailable', 'this payment cannot be made by bank transfer', {
      field: 'payment_method',
    })
  }
  return details
}

/** The same; null if `transferDetails` throws. */
export async function findTransferDetails(
  ctx: Context,
  transaction: PayableTransaction,
): Promise<TransferDetails | null> {
  const account = await receivingAccount(ctx.db, await getApp(ctx.db, transaction.appId))
  const { transferCode, amount } = transaction
  const amountDue = dueOf(transaction)
  const amountReceived = keptOf(transaction)
  if (!account || transferCode === null || amountDue <= 0) return null
  return {
    bank: account.bank,
    bankName: findBank(account.bin)?.name ?? account.bank,
    accountNumber: account.number,
    accountHolder: account.holder,
    amountDue,
    amountReceived,
    amount,
    transferCode,
    qrPayload: vietQrPayload({
      bin: account.bin,
      number: account.number,
      amount: amountDue,
      purpose: transferCode,
    }),
  }
}
