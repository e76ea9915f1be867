import type { Auth } from 'firebase-admin/auth'
import { decodeJwt, type JWTPayload } from 'jose'
import type { Context } from '#context.ts'
import { within } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'

/** Time for fetching Google's certificates, which the SDK does without a limit. */
const FETCH_MS = 4000
/** After a fetch that hung, tokens are refused at once for so long, so that calls do not pile up behind the next. */
const PAUSE_MS = 5000
/** Projects whose verifier, with Google's certificates in it, is kept. */
const MAX_PROJECTS = 256

interface Verifier {
  readonly auth: Auth
  pausedUntilMs: number
}

const verifiers = new Map<string, Verifier>()

/**
 * The claims of an identity token of a Firebase project, whose signature, issuer and audience firebase-admin has checked. They may
 * be those of an expired token: the caller decides by `exp`, since the SDK knows no leeway. Throws for any other fault.
 */
export async function verifyFirebaseToken(ctx: Context, projectId: string, token: string): Promise<JWTPayload> {
  const verifier = await verifierOf(projectId)
  if (performance.now() < verifier.pausedUntilMs) throw new Error("Google's certificates did not come lately")
  const timeout = new CertificatesLate()
  try {
    return await within(verifier.auth.verifyIdToken(token), FETCH_MS, timeout)
  } catch (error) {
    // The SDK looks at the expiry last, after content and signature, so that only the expiry is wrong here.
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
    super(`Google's certificates did not come within ${FETCH_MS} ms`)
  }
}

async function verifierOf(projectId: string): Promise<Verifier> {
  const known = verifiers.get(projectId)
  if (known) return known
  const [{ initializeApp, deleteApp }, { getAuth }] = await Promise.all([
    import('firebase-admin/app'),
    import('firebase-admin/auth'),
  ])
  const made = verifiers.get(projectId)
  if (made) return made
  // A project id is all that checking takes: without a credential of its own the SDK would look for one on this machine.
  const credential = { getAccessToken: () => Promise.reject(new Error('checking tokens takes no credential')) }
  const verifier = {
    auth: getAuth(initializeApp({ projectId, credential }, `identity ${projectId}`)),
    pausedUntilMs: 0,
  }
  verifiers.set(projectId, verifier)
  const [oldest] = verifiers
  if (verifiers.size > MAX_PROJECTS && oldest) {
    verifiers.delete(oldest[0])
    await deleteApp(oldest[1].auth.app)
  }
  return verifier
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
