import type { Subscription } from '../../client/src/types.ts'
import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { setIdentity } from '#apps/set-identity.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { getApp } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import type { RealtimeNode } from '#realtime/node.ts'
import { parseTimestamp } from '#shared/time.ts'
import type { Read, Written } from './answers.ts'
import { startService, type Answer, type Response, type TestService } from './api.ts'
import { TestClock } from './context.ts'
import { anApp, aPlan, type AppOptions, type TestApp } from './factories.ts'
import type { OidcIssuer } from './oidc-issuer.ts'
import type { RealtimePeer } from './realtime-peer.ts'
import { aServiceAccountFile } from './service-account.ts'
import type { PayableCheckout } from './scenario.ts'

/** An end user's client: calls with its identity token. */
export interface Client {
  get<Path extends string>(path: Path): Promise<Answer<Read<Path>>>
  post<Path extends string>(
    path: Path,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer<Written<Path>>>
  put<Path extends string>(path: Path, body: unknown): Promise<Answer<Written<Path>>>
}

/** An app without a server: its clients, its realtime database, and a clock that the scenario moves. */
export interface ClientScenario {
  readonly service: TestService
  readonly app: TestApp
  readonly clock: TestClock
  as(sub: string): Client
  plan(code: string, ...prices: object[]): Promise<string[]>
  /** Opens a checkout of `user-1` over the API. */
  checkout(body: object): Promise<PayableCheckout>
  /** Pays a checkout by the test method. */
  pay(checkout: { checkout_url: string }): Promise<void>
  /** Opens a checkout and pays it. */
  buy(priceId: string): Promise<PayableCheckout>
  subscription(): Promise<Subscription>
  /** The node of `user-1`, as a second client reads it. */
  node(): Promise<RealtimeNode | null>
  stop(): Promise<void>
}

export interface ClientScenarioOptions extends AppOptions {
  readonly databaseUrl?: string
  readonly settings?: Readonly<Record<string, string>>
  readonly clock?: TestClock
}

/** A timestamp of the API in milliseconds, as nodes have it. */
export function unixMs(timestamp: string): number {
  return parseTimestamp(timestamp)!.getTime()
}

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

export async function startClientScenario(
  peer: RealtimePeer,
  issuer: OidcIssuer,
  options: ClientScenarioOptions = {},
): Promise<ClientScenario> {
  const { databaseUrl = 'https://demo-proj.firebaseio.com', settings, clock = new TestClock(), ...appOptions } = options
  const emulator = { FIREBASE_DATABASE_EMULATOR_HOST: peer.host }
  const service = await startService(settings ?? emulator, clock)
  const { ctx } = service
  const made = await anApp(ctx, { auth: 'identity', ...appOptions })
  const identity = {
    provider: 'oidc',
    issuer: issuer.issuer,
    audience: issuer.audience,
    jwksUrl: issuer.jwksUrl,
  }
  await perform(ctx, operator('tester'), setIdentity, identity, { app: made.app })
  const database = { databaseUrl, serviceAccount: aServiceAccountFile() }
  await perform(ctx, operator('tester'), setRealtime, database, { app: made.app })
  const app = { ...made, app: await getApp(ctx.db, made.app.id) }
  const scenario: ClientScenario = {
    service,
    app,
    clock,
    as: (sub) => clientOf(service, issuer, app.apiKey, clock, sub),
    async plan(code, ...prices) {
      const plan = await aPlan(ctx, app, { code, prices })
      return plan.prices.map(({ id }) => `price_${id}`)
    },
    async checkout(body) {
      const input = { external_ref: 'user-1', mode: 'subscription', ...URLS, ...body }
      const answer = await scenario.as('user-1').post('/api/v1/checkout-sessions', input)
      if (answer.status !== 201) throw new Error(`the checkout was refused: ${answer.text}`)
      return answer.body.data as PayableCheckout
    },
    async pay({ checkout_url }) {
      await chooseMethod(ctx, checkout_url.slice(-64), 'test')
    },
    async buy(priceId) {
      const checkout = await scenario.checkout({ price_id: priceId })
      await scenario.pay(checkout)
      return checkout
    },
    async subscription() {
      return (await scenario.as('user-1').get('/api/v1/subscriptions/user-1')).body.data
    },
    node: async () => (await peer.read('users/user-1/subscription')) as RealtimeNode | null,
    stop: () => service.stop(),
  }
  return scenario
}

function clientOf(service: TestService, issuer: OidcIssuer, apiKey: string, clock: TestClock, sub: string): Client {
  const call = async (method: string, path: string, body?: unknown, headers = {}): Promise<Response<never>> => {
    const token = await issuer.token(clock.now(), sub)
    return service.call<never>(method, path, {
      headers: {
        'X-App-Key': apiKey,
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { raw: JSON.stringify(body) }),
    })
  }
  return {
    get: (path) => call('GET', path),
    post: (path, body, headers) => call('POST', path, body, headers),
    put: (path, body) => call('PUT', path, body),
  }
}
