import type { App } from 'firebase-admin/app'
import type { Auth } from 'firebase-admin/auth'
import { decodeJwt, type JWTPayload } from 'jose'
import type { Context } from '#context.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import { withTimeout } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'

/** Time limit for fetching Google's certificates; the SDK itself has none. */
const FETCH_MS = 4000
/** After a fetch that hung, tokens are refused at once for this long, so that calls do not pile up behind the next fetch. */
const PAUSE_MS = 5000
/** Verifiers by their projects, which operators choose, each with Google's certificates: no token can drop one. */
const MAX_PROJECTS = 256

interface Verifier {
  readonly auth: Auth
  pausedUntilMs: number
}

const verifiers = new BoundedMap<string, Verifier>(
  MAX_PROJECTS,
  ({ auth }) => void discard(auth.app).catch(() => undefined),
)

/**
 * The claims of an identity token of a Firebase project, whose signature, issuer and audience firebase-admin has verified. The token may
 * have expired: the caller checks `exp`, because the SDK has no leeway. Throws for any other error.
 */
export async function verifyFirebaseToken(ctx: Context, projectId: string, token: string): Promise<JWTPayload> {
  const verifier = await verifierOf(projectId)
  if (performance.now() < verifier.pausedUntilMs) throw new Error("Google's certificates could not be fetched recently")
  const timeout = new CertificatesLate()
  try {
    return await withTimeout(verifier.auth.verifyIdToken(token), FETCH_MS, timeout)
  } catch (error) {
    // The SDK checks the expiry last, after content and signature, so that only the expiry is wrong here.
    if (codeOf(error) === 'auth/id-token-expired') return decodeJwt(token)
    if (error === timeout) verifier.pausedUntilMs = performance.now() + PAUSE_MS
    if (error === timeout || /fetch|network|socket/i.test(messageOf(error))) {
      ctx.log.warn({ error }, "Google's certificates for identity tokens could not be fetched")
    }
    throw error
  }
}

class CertificatesLate extends Error {
  override readonly name = 'CertificatesLate'

  constructor() {
    super(`Google's certificates did not arrive within ${FETCH_MS} ms`)
  }
}

async function verifierOf(projectId: string): Promise<Verifier> {
  const known = verifiers.get(projectId)
  if (known) return known
  const [{ initializeApp }, { getAuth }] = await Promise.all([
    import('firebase-admin/app'),
    import('firebase-admin/auth'),
  ])
  const made = verifiers.get(projectId)
  if (made) return made
  // Verification needs only a project id. Without a credential, the SDK would look for one on this machine.
  const credential = { getAccessToken: () => Promise.reject(new Error('verification needs no credential')) }
  const verifier = {
    auth: getAuth(initializeApp({ projectId, credential }, `identity ${projectId}`)),
    pausedUntilMs: 0,
  }
  verifiers.set(projectId, verifier)
  return verifier
}

async function discard(app: App): Promise<void> {
  const { deleteApp } = await import('firebase-admin/app')
  await deleteApp(app)
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
