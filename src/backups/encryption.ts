import { readFileSync } from 'node:fs'
import { AppError, messageOf } from '#shared/errors.ts'
import { labelling, type Label } from './label.ts'

/** Throws `invalid_request` unless the text is a public key of age, `age1…`. */
export async function refuseWrongRecipient(recipient: string): Promise<void> {
  const { Encrypter } = await import('age-encryption')
  try {
    new Encrypter().addRecipient(recipient)
  } catch (error) {
    throw new AppError('invalid_request', `the recipient must be a public key of age (age1…): ${messageOf(error)}`)
  }
}

/** The bytes encrypted to the recipient, in the format of age, with the label in the header. */
export async function* encrypted(
  plain: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  recipient: string,
  label?: Label,
): AsyncGenerator<Uint8Array> {
  const { Encrypter } = await import('age-encryption')
  const encrypter = new Encrypter()
  encrypter.addRecipient(recipient)
  if (label) encrypter.addRecipient(await labelling(label))
  yield* await encrypter.encrypt(ReadableStream.from(plain))
}

/** The decrypted bytes. Throws if none of the identities fits, or if the bytes were changed or truncated. */
export async function* decrypted(
  secret: AsyncIterable<Uint8Array>,
  identities: readonly string[],
): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity)
  yield* await decrypter.decrypt(ReadableStream.from(secret))
}

/** The private keys in a file as `age-keygen` writes it. Throws `invalid_request` if it has none. */
export function readIdentities(path: string): string[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  const identities = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  if (identities.length > 0 && identities.every((line) => line.startsWith('AGE-SECRET-KEY-'))) return identities
  throw new AppError('invalid_request', `${path} has no private key of age (AGE-SECRET-KEY-…)`)
}

/** The public keys of the identities. */
export async function recipientsOf(identities: readonly string[]): Promise<string[]> {
  const { identityToRecipient } = await import('age-encryption')
  return Promise.all(identities.map((identity) => identityToRecipient(identity)))
}
