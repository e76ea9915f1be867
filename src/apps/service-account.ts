import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'

/** The stored part of a service account's file. It contains no address, so that the file cannot redirect token requests. */
export const ServiceAccountFile = z
  .object({
    type: z.literal('service_account', 'must be service_account').default('service_account'),
    project_id: z.string().min(1, 'must not be empty').max(200, 'is too long'),
    client_email: z.email('must be an e-mail address').max(320, 'is too long'),
    private_key: z.string().max(20_000, 'is too long').refine(isPrivateKey, 'must be a private key in PEM form'),
  })
  .transform(({ type, project_id, client_email, private_key }) => ({ type, project_id, client_email, private_key }))

/** The signing key for access tokens, from the text that `setRealtime` stored. */
export function readServiceAccount(text: string): { readonly clientEmail: string; readonly privateKey: string } {
  const account = ServiceAccountFile.parse(JSON.parse(text))
  return { clientEmail: account.client_email, privateKey: account.private_key }
}

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}
