import { createServer } from 'node:http'
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK, type JWTPayload } from 'jose'
import { listen, stopServer } from './http-server.ts'

interface Key {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

/** `hang` accepts and never answers; a number answers that status; `huge` and `garbage` answer 200 without a valid key set. */
export type Behaviour = 'ok' | 'hang' | 'huge' | 'garbage' | number

/** An issuer of identity tokens whose keys change on request. */
export interface OidcIssuer {
  readonly issuer: string
  readonly audience: string
  readonly jwksUrl: string
  /** The paths that were requested. */
  readonly fetched: string[]
  behaviour: Behaviour
  /** The key that signs now. */
  key(): Key
  /** Signs with a new key from now on; earlier keys are no longer published, unless `keepOld`. */
  rotate(options?: { alg?: string; keepOld?: boolean }): Promise<void>
  /** A valid token for the subject, for an hour from `now`; `claims` and `header` replace parts of it. */
  token(now: Date, sub: string, claims?: JWTPayload, header?: Record<string, unknown>): Promise<string>
  stop(): Promise<void>
}

export async function startOidcIssuer(): Promise<OidcIssuer> {
  let published: Key[] = [await rsaKey()]
  let made = 1
  const fetched: string[] = []
  const server = createServer((request, response) => {
    fetched.push(request.url ?? '')
    if (issuer.behaviour === 'hang') return
    const status = typeof issuer.behaviour === 'number' ? issuer.behaviour : 200
    response.writeHead(status, { 'content-type': 'application/json' }).end(bodyOf(issuer.behaviour, published))
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const issuer: OidcIssuer = {
    issuer: url,
    audience: 'reader-web',
    jwksUrl: `${url}/jwks`,
    fetched,
    behaviour: 'ok',
    key: () => published[0]!,
    async rotate({ alg = 'RS256', keepOld = false } = {}) {
      made += 1
      published = [await newKey(`key-${made}`, alg), ...(keepOld ? published : [])]
    },
    async token(now, sub, claims = {}, header = {}) {
      const { kid, alg, privateKey } = issuer.key()
      const seconds = Math.floor(now.getTime() / 1000)
      const times = { iat: seconds, exp: seconds + 3600 }
      const payload = { iss: issuer.issuer, aud: issuer.audience, sub, ...times, ...claims }
      return new SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'JWT', ...header }).sign(privateKey)
    },
    stop: () => stopServer(server),
  }
  return issuer
}

let firstKey: Key | null = null

/** Every issuer begins with the same RSA key, because generating one is slow. */
async function rsaKey(): Promise<Key> {
  firstKey ??= await newKey('key-1', 'RS256')
  return firstKey
}

async function newKey(kid: string, alg: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

function bodyOf(behaviour: Behaviour, keys: readonly Key[]): string {
  if (behaviour === 'garbage') return '<html>'
  if (behaviour === 'huge')
    return JSON.stringify({ keys: keys.map(({ publicJwk }) => publicJwk), x: 'x'.repeat(2 ** 21) })
  return JSON.stringify({ keys: keys.map(({ publicJwk }) => publicJwk) })
}
