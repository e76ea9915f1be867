import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK, type JWTPayload } from 'jose'

interface Key {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

/** `hang` accepts and never answers; a number answers that status; `huge` and `garbage` answer 200 with what is no key set. */
export type Behaviour = 'ok' | 'hang' | 'huge' | 'garbage' | number

/** An issuer of identity tokens whose keys change on request. */
export interface OidcIssuer {
  readonly issuer: string
  readonly audience: string
  readonly jwksUrl: string
  /** Paths that were asked for. */
  readonly fetched: string[]
  behaviour: Behaviour
  /** The key that signs now. */
  key(): Key
  /** Signs with a new key from now on; those before it are published no more, unless `keepOld`. */
  rotate(options?: { alg?: string; keepOld?: boolean }): Promise<void>
  /** A good token for the subject, valid for an hour from `now`; `claims` and `header` change what is in it. */
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return issuer
}

let firstKey: Key | null = null

/** RSA keys take long to make, so every issuer begins with the same. */
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
