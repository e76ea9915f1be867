import { sha256Hex } from '#shared/crypto.ts'

/** Hash of what stands below a mail's header, which is the same whichever way the mail came; of all of it where nothing does. */
export function contentHashOf(raw: Buffer): string {
  const ends = ['\n\n', '\n\r\n'].map((end) => raw.indexOf(end)).filter((at) => at !== -1)
  const body = ends.length === 0 ? null : raw.subarray(Math.min(...ends))
  return sha256Hex(body === null || body.toString('latin1').trim() === '' ? raw : body)
}
