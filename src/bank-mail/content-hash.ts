import { sha256Hex } from '#shared/crypto.ts'

/**
 * Hash of a mail's body, which does not depend on the mail's route: one mail server hands lines over with LF, another with CRLF. Of the
 * whole mail if the body is empty.
 */
export function contentHashOf(raw: Buffer): string {
  const mail = raw.toString('latin1').replaceAll('\r\n', '\n')
  const end = mail.indexOf('\n\n')
  const body = end === -1 ? '' : mail.slice(end)
  return sha256Hex(Buffer.from(body.trim() === '' ? mail : body, 'latin1'))
}
