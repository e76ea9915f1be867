import type { Context } from '#context.ts'
import { receivingAccount } from '#bank-accounts/receiving-account.ts'
import { inTransaction } from '#commands/transaction.ts'
import { defineProvider } from '#providers/provider.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import { assignTransferCode } from './store.ts'
import { findTransferCodes, nearTransferCodes, newTransferCode } from './transfer-code.ts'

/** Manual transfers to the app's own account, which the bank's mails report (R191). */
export const bankTransfer = defineProvider({
  method: 'bank_transfer',
  code: 'bank_transfer',
  texts: {
    en: {
      name: 'Bank transfer',
      hint: 'Scan a VietQR code or enter the details in your banking app',
      pay: 'Pay by bank transfer',
    },
    vi: {
      name: 'Chuyển khoản ngân hàng',
      hint: 'Quét mã VietQR hoặc nhập thông tin trong ứng dụng ngân hàng',
      pay: 'Thanh toán bằng chuyển khoản',
    },
  },
  hasBankPage: true,
  hasQrCode: true,
  codes: { findIn: findTransferCodes, near: nearTransferCodes },
  accepts: (amount, currency) => currency === 'VND' && amount < 1e13,
  async isReady(db, app, enabled) {
    return enabled.some(({ reportsTransfers }) => reportsTransfers) && (await receivingAccount(db, app)) !== null
  },
  async open(ctx, { transaction, bankPageUrl }) {
    await ensureTransferCode(ctx, transaction)
    return { redirectUrl: bankPageUrl }
  },
})

/** A transaction keeps its first code: a payer may already be using it. */
async function ensureTransferCode(ctx: Context, transaction: PayableTransaction): Promise<void> {
  if (transaction.transferCode !== null) return
  await inTransaction(ctx, async (tx) => {
    while (!(await assignTransferCode(tx, transaction.id, newTransferCode())));
  })
}
