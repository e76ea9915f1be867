import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { importPKCS8, SignJWT, type JWTPayload } from 'jose'
import { aSigningCertificate, anAuthority, type Authority } from './certificates.ts'
import { listen, stopServer } from './http-server.ts'

/** `hang` accepts and never answers; a number answers that status. */
export type Behaviour = 'ok' | 'hang' | number

/**
 * Google's two endpoints on loopback, over TLS under their own names: the token endpoint of service accounts and the certificates of
 * identity tokens. A child process with `environment` reaches them, and no other host of the internet.
 */
export interface GooglePeer {
  readonly authority: Authority
  /** `HTTPS_PROXY` and the like, and the certificate authority of the peer. */
  readonly environment: Readonly<Record<string, string>>
  /** The access token that is issued now. */
  accessToken: string
  tokenBehaviour: Behaviour
  /** The lifetime of tokens in its responses. */
  tokenSeconds: number
  certificateBehaviour: Behaviour
  /** The assertions of token requests. */
  readonly tokenRequests: string[]
  certificateRequests: number
  /** The public certificate of identity tokens. */
  readonly certificate: string
  /** Every target that the proxy was asked to connect to. */
  readonly connects: string[]
  /** An identity token of the project `demo-proj`; `claims` and `header` replace parts of it, `key` signs it. */
  idToken(now: Date, sub: string, claims?: JWTPayload, header?: Record<string, unknown>, key?: string): Promise<string>
  stop(): Promise<void>
}

const TOKENS = 'oauth2.googleapis.com'
const CERTIFICATES = 'www.googleapis.com'
const CERTIFICATES_PATH = '/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com'
export const PROJECT = 'demo-proj'

export async function startGooglePeer(): Promise<GooglePeer> {
  const authority = anAuthority()
  const signing = aSigningCertificate()
  const tls = authority.issue(TOKENS, CERTIFICATES)
  const google = createTlsServer(tls, (request, response) => void answer(request, response))
  const googlePort = await listen(google)
  const proxy = createServer()
  proxy.on('connect', (request: IncomingMessage, socket: Socket) => {
    const target = request.url ?? ''
    peer.connects.push(target)
    if (target !== `${TOKENS}:443` && target !== `${CERTIFICATES}:443`) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const upstream = connect(googlePort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('error', () => upstream.destroy())
    tunnels.add(socket).add(upstream)
  })
  const tunnels = new Set<Socket>()
  const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`
  const peer: GooglePeer = {
    authority,
    environment: {
      HTTPS_PROXY: proxyUrl,
      https_proxy: proxyUrl,
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      NODE_USE_ENV_PROXY: '1',
      NODE_EXTRA_CA_CERTS: authority.caPath,
    },
    accessToken: 'ya29.first',
    tokenBehaviour: 'ok',
    tokenSeconds: 3600,
    certificateBehaviour: 'ok',
    tokenRequests: [],
    certificateRequests: 0,
    certificate: signing.cert,
    connects: [],
    async idToken(now, sub, claims = {}, header = {}, key = signing.key) {
      const seconds = Math.floor(now.getTime() / 1000)
      const times = { auth_time: seconds - 10, iat: seconds - 10, exp: seconds + 3600 }
      const firebase = { identities: {}, sign_in_provider: 'password' }
      const issuer = `https://securetoken.google.com/${PROJECT}`
      const payload = { iss: issuer, aud: PROJECT, user_id: sub, sub, ...times, firebase, ...claims }
      const signer = await importPKCS8(key, 'RS256')
      return new SignJWT(payload)
        .setProtectedHeader({ alg: 'RS256', kid: 'google-1', typ: 'JWT', ...header })
        .sign(signer)
    },
    async stop() {
      for (const socket of tunnels) socket.destroy()
      await Promise.all([stopServer(google), stopServer(proxy)])
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const host = request.headers.host ?? ''
    const body = await text(request)
    if (host.startsWith(TOKENS) && request.url === '/token') {
      peer.tokenRequests.push(new URLSearchParams(body).get('assertion') ?? body)
      const token = { access_token: peer.accessToken, token_type: 'Bearer', expires_in: peer.tokenSeconds }
      send(response, peer.tokenBehaviour, token, {})
    } else if (host.startsWith(CERTIFICATES) && request.url === CERTIFICATES_PATH) {
      peer.certificateRequests += 1
      send(
        response,
        peer.certificateBehaviour,
        { 'google-1': signing.cert },
        { 'cache-control': 'public, max-age=3600' },
      )
    } else {
      response.writeHead(404).end()
    }
  }

  return peer
}

function send(
  response: ServerResponse,
  behaviour: Behaviour,
  value: object,
  headers: Readonly<Record<string, string>>,
): void {
  if (behaviour === 'hang') return
  const status = behaviour === 'ok' ? 200 : behaviour
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(status === 200 ? value : { error: 'refused by the test' }))
}
