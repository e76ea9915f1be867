import type { TransferDetails } from './transfer-details.ts'

/** The ten largest banks whose apps VietQR's links open, with VietQR's ids and names; the largest first. */
const APPS: readonly (readonly [id: string, name: string])[] = [
  ['bidv', 'BIDV'],
  ['vba', 'Agribank'],
  ['icb', 'VietinBank'],
  ['vcb', 'Vietcombank'],
  ['mb', 'MBBank'],
  ['tcb', 'Techcombank'],
  ['vpb', 'VPBank'],
  ['acb', 'ACB'],
  ['shb', 'SHB'],
  ['hdb', 'HDBank'],
]

export interface BankAppLink {
  readonly name: string
  readonly href: string
}

/**
 * Links that open a payer's banking app with the transfer filled in, where that app can (vietqr.io, "Deeplink"). They lead through a third
 * party, so that `returnUrl` must be no address with a token.
 */
export function bankAppLinks(details: TransferDetails, returnUrl: string): BankAppLink[] {
  const { accountNumber, bank, amountDue, transferCode, accountHolder } = details
  return APPS.map(([id, name]) => {
    const fields = {
      app: id,
      ba: `${accountNumber}@${bank.toLowerCase()}`,
      am: String(amountDue),
      tn: transferCode,
      bn: accountHolder,
      url: returnUrl,
    }
    // Not every banking app reads a plus as a blank.
    const query = Object.entries(fields).map(
      ([field, value]) => `${field}=${encodeURIComponent(value).replaceAll('%40', '@')}`,
    )
    return { name, href: `https://dl.vietqr.io/pay?${query.join('&')}` }
  })
}
