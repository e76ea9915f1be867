import { crc16, type VietQr } from '#bank-accounts/vietqr.ts'

/** Reads a VietQR text field by field, the inner ones too; throws at the first that is not as it must be. */
export function decodeVietQr(payload: string): VietQr {
  if (crc16(payload.slice(0, -4)) !== payload.slice(-4)) throw new Error('wrong checksum')
  const fields = readFields(payload)
  const account = readFields(fields.get('38') ?? '')
  const beneficiary = readFields(account.get('01') ?? '')
  const words = readFields(fields.get('62') ?? '')
  if (required(account, '02') !== 'QRIBFTTA') throw new Error('not to an account')
  if (account.get('00') !== 'A000000727' || fields.get('53') !== '704' || fields.get('58') !== 'VN') {
    throw new Error('no NAPAS code')
  }
  if ((fields.get('01') === '12') !== fields.has('54')) throw new Error('the kind of code and the amount disagree')
  return {
    bin: required(beneficiary, '00'),
    number: required(beneficiary, '01'),
    ...(fields.has('54') ? { amount: Number(fields.get('54')) } : {}),
    ...(words.has('08') ? { purpose: required(words, '08') } : {}),
  }
}

function readFields(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = 0; at < text.length;) {
    const length = Number(text.slice(at + 2, at + 4))
    const value = text.slice(at + 4, at + 4 + length)
    if (!Number.isInteger(length) || length < 1 || value.length !== length) throw new Error('wrong length of a field')
    fields.set(text.slice(at, at + 2), value)
    at += 4 + length
  }
  return fields
}

function required(fields: Map<string, string>, tag: string): string {
  const value = fields.get(tag)
  if (value === undefined) throw new Error(`field ${tag} is missing`)
  return value
}
