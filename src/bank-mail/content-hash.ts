import { sha256Hex } from '#shared/crypto.ts'

/** Hash of a mail's body, which does not depend on the mail's route; of the whole mail if the body is empty. */
export function contentHashOf(raw: Buffer): string {
  const ends = ['\n\n', '\n\r\n'].map((end) => raw.indexOf(end)).filter((at) => at !== -1)
  const body = ends.length === 0 ? null : raw.subarray(Math.min(...ends))
  return sha256Hex(body === null || body.toString('latin1').trim() === '' ? raw : body)
}
