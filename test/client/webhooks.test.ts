import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { EVENTS, type EventType } from '#webhooks/events.ts'
import { signingKeys, webhookHeaders } from '#webhooks/signature.ts'
import { verifyWebhook, WebhookError, type WebhookBody } from '../../client/src/index.ts'
import { signWebhook } from '../../client/src/testing.ts'

const SECRET = `whsec_${randomBytes(24).toString('base64')}`
const NOW = Date.parse('2026-12-01T09:31:12Z')
const BODY = Buffer.from(
  JSON.stringify({
    event_type: 'transaction.completed',
    app_id: 1,
    data: EVENTS['transaction.completed'].example,
    created_at: 'ư',
  }),
)

/** What the service itself sends, in the names of Node's requests. */
function delivered(secret = SECRET, seconds = NOW / 1000): Record<string, string> {
  const delivery = { eventId: 7, eventType: 'transaction.completed', attempt: 2, timestamp: seconds, body: BODY }
  return Object.fromEntries(
    Object.entries(webhookHeaders(signingKeys(secret), delivery)).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

const without = (headers: Record<string, string>, pattern: RegExp): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !pattern.test(name)))

describe('webhooks.verify of the client', () => {
  it('returns the event that the service sent, with its id', async () => {
    const event = await verifyWebhook(BODY, delivered(), SECRET, { now: NOW })
    expect(event).to.deep.equal({ ...JSON.parse(BODY.toString()), id: 'evt_7' })
    expect(await verifyWebhook(BODY.toString(), new Headers(delivered()), SECRET, { now: NOW })).to.deep.equal(event)
    const bytes = new Uint8Array(BODY).buffer
    expect(await verifyWebhook(bytes, delivered(), SECRET, { now: NOW })).to.deep.equal(event)
  })

  it('accepts either of the two signatures, and any of several', async () => {
    const headers = delivered()
    for (const left of [without(headers, /^x-gateway/), without(headers, /^webhook-/)])
      expect((await verifyWebhook(BODY, left, SECRET, { now: NOW })).id).to.equal('evt_7')
    const several = {
      ...without(headers, /^x-gateway/),
      'webhook-signature': `v1,AAAA v2,x ${headers['webhook-signature']}`,
    }
    expect((await verifyWebhook(BODY, several, SECRET, { now: NOW })).id).to.equal('evt_7')
    const broken = { ...headers, 'x-gateway-signature': 'zz' }
    expect((await verifyWebhook(BODY, broken, SECRET, { now: NOW })).id).to.equal('evt_7')
  })

  const refused: Record<string, () => Promise<unknown>> = {
    'another secret': () =>
      verifyWebhook(BODY, delivered(`whsec_${randomBytes(24).toString('base64')}`), SECRET, { now: NOW }),
    'another body': () => verifyWebhook(`${BODY.toString()} `, delivered(), SECRET, { now: NOW }),
    'an old timestamp': () => verifyWebhook(BODY, delivered(SECRET, NOW / 1000 - 301), SECRET, { now: NOW }),
    'a timestamp in the future': () => verifyWebhook(BODY, delivered(SECRET, NOW / 1000 + 301), SECRET, { now: NOW }),
    'a changed timestamp': () =>
      verifyWebhook(
        BODY,
        { ...delivered(), 'x-gateway-timestamp': '1796000000', 'webhook-timestamp': '1796000000' },
        SECRET,
        {
          now: 1796000000_000,
        },
      ),
    'no headers': () => verifyWebhook(BODY, {}, SECRET, { now: NOW }),
    'half a secret': () => verifyWebhook(BODY, delivered(), SECRET.slice(6), { now: NOW }),
    'no signature': () => verifyWebhook(BODY, without(delivered(), /signature/), SECRET, { now: NOW }),
  }
  for (const [what, verify] of Object.entries(refused)) {
    it(`refuses ${what}`, async () => {
      expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(WebhookError)
    })
  }

  it('accepts another tolerance', async () => {
    const old = delivered(SECRET, NOW / 1000 - 301)
    expect((await verifyWebhook(BODY, old, SECRET, { now: NOW, toleranceSeconds: 301 })).id).to.equal('evt_7')
  })

  it('accepts events of every type that signWebhook signed', async () => {
    for (const type of Object.keys(EVENTS) as EventType[]) {
      const event = { event_type: type, app_id: 1, data: EVENTS[type].example, created_at: '2026-12-01T09:31:12+00:00' }
      const { body, headers } = await signWebhook(event as WebhookBody, SECRET, NOW)
      expect(await verifyWebhook(body, headers, SECRET, { now: NOW })).to.deep.equal({ ...event, id: 'evt_1' })
    }
  })
})
