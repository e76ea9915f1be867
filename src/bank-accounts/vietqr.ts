/** What a VietQR code asks a payer's banking app to fill in (NAPAS 247, version 1.5 of its QR format). */
export interface VietQr {
  /** Six digits, see `banks.ts`. */
  readonly bin: string
  /** Account number: 1 to 19 letters and digits. */
  readonly number: string
  /** Whole dong; a code without an amount leaves it to the payer. */
  readonly amount?: number
  /** The transfer's text: 1 to 25 letters, digits and blanks. */
  readonly purpose?: string
}

const NAPAS = 'A000000727'
/** NAPAS's service for transfers to an account. */
const TO_ACCOUNT = 'QRIBFTTA'
const VND = '704'

/**
 * The text of a VietQR code: EMVCo tag-length-value fields and a checksum. Throws if a banking app might change a value,
 * since the transfer code must arrive as it is.
 */
export function vietQrPayload({ bin, number, amount, purpose }: VietQr): string {
  demand(/^\d{6}$/.test(bin), 'the BIN must have 6 digits')
  demand(/^[0-9A-Za-z]{1,19}$/.test(number), 'the account number must have 1 to 19 letters and digits')
  demand(amount === undefined || isAmount(amount), 'the amount must be a whole number of 1 to 13 digits')
  demand(purpose === undefined || isPlain(purpose), 'the purpose must have 1 to 25 plain letters, digits and blanks')
  const account = field('00', NAPAS) + field('01', field('00', bin) + field('01', number)) + field('02', TO_ACCOUNT)
  const fields =
    field('00', '01') +
    field('01', amount === undefined ? '11' : '12') +
    field('38', account) +
    field('53', VND) +
    optional('54', amount?.toString()) +
    field('58', 'VN') +
    optional('62', purpose === undefined ? undefined : field('08', purpose))
  const covered = `${fields}6304`
  return covered + crc16(covered)
}

/** CRC-16/CCITT-FALSE of ASCII text in four upper-case hex digits. */
export function crc16(text: string): string {
  let crc = 0xffff
  for (const byte of Buffer.from(text, 'ascii')) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc.toString(16).toUpperCase().padStart(4, '0')
}

function field(tag: string, value: string): string {
  demand(value.length >= 1 && value.length <= 99, `field ${tag} must have 1 to 99 characters`)
  return tag + String(value.length).padStart(2, '0') + value
}

function optional(tag: string, value: string | undefined): string {
  return value === undefined ? '' : field(tag, value)
}

function isAmount(amount: number): boolean {
  return Number.isSafeInteger(amount) && amount > 0 && amount < 1e13
}

function isPlain(text: string): boolean {
  return /^[0-9A-Za-z ]{1,25}$/.test(text) && text.trim() === text
}

function demand(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new RangeError(rule)
}
