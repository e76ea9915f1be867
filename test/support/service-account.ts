import { generateKeyPairSync } from 'node:crypto'

let privateKey: string | null = null

/** A service account with a key of this run. */
export function aServiceAccount(): { projectId: string; clientEmail: string; privateKey: string } {
  privateKey ??= generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
  return { projectId: 'demo-proj', clientEmail: 'svc@demo-proj.iam.gserviceaccount.com', privateKey }
}

/** The account as its JSON file, with the other fields that Google writes. */
export function aServiceAccountFile(changes: Readonly<Record<string, unknown>> = {}): string {
  const { projectId, clientEmail, privateKey: key } = aServiceAccount()
  return JSON.stringify({
    type: 'service_account',
    project_id: projectId,
    private_key_id: 'key-1',
    private_key: key,
    client_email: clientEmail,
    client_id: '1',
    token_uri: 'https://oauth2.googleapis.com/token',
    ...changes,
  })
}
