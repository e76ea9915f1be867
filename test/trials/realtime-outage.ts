import { getApp } from '#apps/store.ts'
import { countFailedWrites } from '#realtime/store.ts'
import { operator } from '#commands/caller.ts'
import { resyncNodes } from '#subscriptions/resync-node.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { startClientScenario, type ClientScenario } from '../support/client-scenario.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, YEARLY } from '../support/factories.ts'
import { startOidcIssuer } from '../support/oidc-issuer.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'

/** The behaviour of the database while payments are made. */
export type Outage = 'unreachable' | 'hanging' | 'refusing' | 'unauthorized' | 'dying'
export const OUTAGES: readonly Outage[] = ['unreachable', 'hanging', 'refusing', 'unauthorized', 'dying']

const CALL_MS = 6000
const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

/**
 * End users start trials and pay over real HTTP while the realtime database fails in one way or another. Throws if a payment does
 * not complete, a call takes 6 s or more, no write fails, `resync --failed` leaves an outdated node, or the ledger has a discrepancy.
 */
export async function realtimeOutage(outage: Outage, endUsers: number, seed: number) {
  const issuer = await startOidcIssuer()
  const peer = await startRealtimePeer()
  const scenario = await startClientScenario(peer, issuer)
  try {
    const random = seededRandom(seed)
    const prices = await scenario.plan(
      'pro',
      MONTHLY,
      YEARLY,
      LIFETIME,
      { ...MONTHLY, trial: FREE_TRIAL },
      { ...MONTHLY, trial: PAID_TRIAL },
    )
    const refs = Array.from({ length: endUsers }, (_, index) => `user-${index}`)
    // Some already have a node.
    for (const ref of refs.filter(() => random() < 0.5)) await buy(scenario, ref, prices[0]!)
    await begin(peer, outage, random)
    const paying = refs.map((ref) => buy(scenario, ref, prices[Math.floor(random() * prices.length)]!))
    const durations = (await Promise.all(paying)).flat()
    const slowestMs = Math.max(...durations)
    if (slowestMs >= CALL_MS) throw new Error(`a call took ${Math.round(slowestMs)} ms`)
    await end(peer)
    // By now the trials have ended, but the months have not.
    scenario.clock.set('2026-03-20 00:00:00')
    const hadFailed = await countFailedWrites(scenario.service.ctx.db, 1_000_000)
    if (hadFailed === 0) throw new Error(`seed ${seed}: no write failed during the outage`)
    const app = await getApp(scenario.service.ctx.db, scenario.app.app.id)
    const { written, failed } = await resyncNodes(scenario.service.ctx, operator('linh'), { app, scope: 'failed' })
    if (failed > 0) throw new Error(`${failed} nodes could not be re-synced`)
    if (written < hadFailed) throw new Error(`${hadFailed} writes had failed, but ${written} were repeated`)
    for (const ref of refs) await compareNode(scenario, peer, ref)
    const { faults } = await verifyLedger(scenario.service.ctx, null)
    if (faults.length > 0) throw new Error(`the ledger has discrepancies: ${JSON.stringify(faults)}`)
    return { seed, payments: durations.length, slowestMs, failedWrites: hadFailed, resynced: written }
  } finally {
    await scenario.stop()
    await peer.stop()
    await issuer.stop()
  }
}

async function begin(peer: RealtimePeer, outage: Outage, random: () => number): Promise<void> {
  if (outage === 'unreachable') await peer.shut()
  if (outage === 'hanging') peer.behaviour = 'hang'
  if (outage === 'refusing') peer.behaviour = 503
  if (outage === 'unauthorized') peer.behaviour = 401
  if (outage === 'dying') {
    peer.beforeCall = () => {
      peer.behaviour = random() < 0.3 ? 'ok' : random() < 0.1 ? 'hang' : 500
    }
  }
}

async function end(peer: RealtimePeer): Promise<void> {
  peer.beforeCall = () => undefined
  peer.behaviour = 'ok'
  await peer.shut()
  await peer.reopen()
}

/** One purchase over HTTP; returns the time of each of its calls, in milliseconds. */
async function buy(scenario: ClientScenario, ref: string, priceId: string): Promise<number[]> {
  const { service } = scenario
  const input = { external_ref: ref, mode: 'subscription', price_id: priceId, ...URLS }
  const durations: number[] = []
  const timed = async <T>(call: Promise<T>): Promise<T> => {
    const startedMs = performance.now()
    const answer = await call
    durations.push(performance.now() - startedMs)
    return answer
  }
  const opened = await timed(scenario.as(ref).post('/api/v1/checkout-sessions', input))
  if (opened.status !== 201) throw new Error(`a checkout was refused: ${opened.text}`)
  const { activated, checkout_url, transaction_id } = opened.body.data
  if (activated) return durations
  const paid = await timed(
    service.call('POST', `${checkout_url}/resolve`, {
      headers: { 'Content-Type': 'application/json' },
      raw: JSON.stringify({ payment_method: 'test' }),
    }),
  )
  if (paid.status !== 200) throw new Error(`a payment was refused: ${paid.text}`)
  const { body } = await scenario.as(ref).get(`/api/v1/transactions/${transaction_id as number}`)
  if (body.data.status !== 'completed') throw new Error(`a payment did not complete: ${JSON.stringify(body.data)}`)
  return durations
}

/** The node must agree with the subscription; one that has expired since was not failed, or is free now. */
export async function compareNode(
  scenario: Pick<ClientScenario, 'as'>,
  peer: Pick<RealtimePeer, 'read'>,
  ref: string,
): Promise<void> {
  const { body } = await scenario.as(ref).get(`/api/v1/subscriptions/${ref}`)
  const end = body.data.current_period_end
  const endMs = end === null ? null : Date.parse(`${end.replace(' ', 'T')}Z`)
  const node = (await peer.read(`users/${ref}/subscription`)) as { plan: string; expiresAt?: number } | null
  const isFree = body.data.status === 'expired' && node?.plan === 'free' && node.expiresAt === undefined
  const isSame = node?.plan === 'premium' && (node.expiresAt ?? null) === endMs
  if (!isFree && !isSame) throw new Error(`${ref} ends ${end}, and its node says ${JSON.stringify(node)}`)
}
