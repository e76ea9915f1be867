import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { EVENTS, type EventType } from '#webhooks/events.ts'
import { signingKeys, webhookHeaders } from '#webhooks/signature.ts'
import { verifyWebhook, WebhookError, type WebhookBody } from '../../client/src/index.ts'
import { signWebhook } from '../../client/src/testing.ts'

const SECRET = `whsec_${randomBytes(24).toString('base64')}`
const NOW = Date.parse('2026-12-01T09:31:12Z')
const CONTENT = {
  event_type: 'transaction.completed',
  app_id: 1,
  data: EVENTS['transaction.completed'].example,
  created_at: 'ư',
}
const BODY = Buffer.from(JSON.stringify({ id: 'evt_7', ...CONTENT }))
/** Written by a version whose envelopes had no id. */
const BODY_WITHOUT_ID = Buffer.from(JSON.stringify(CONTENT))

/** What the service itself sends, in the names of Node's requests. */
function delivered(secret = SECRET, seconds = NOW / 1000, body = BODY): Record<string, string> {
  const delivery = { eventId: 7, eventType: 'transaction.completed', attempt: 2, timestamp: seconds, body }
  return Object.fromEntries(
    Object.entries(webhookHeaders(signingKeys(secret), delivery)).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

const without = (headers: Record<string, string>, pattern: RegExp): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !pattern.test(name)))

describe('webhooks.verify of the client', () => {
  it('returns the event that the service sent, with its id', async () => {
    const event = await verifyWebhook(BODY, delivered(), SECRET, { now: NOW })
    expect(event).to.deep.equal(JSON.parse(BODY.toString()))
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

  it('returns the signed id of the body, whichever headers are left', async () => {
    const headers = delivered()
    const own = without(headers, /^webhook-|event-id/)
    expect((await verifyWebhook(BODY, own, SECRET, { now: NOW })).id).to.equal('evt_7')
    const standard = without(headers, /^x-gateway/)
    expect((await verifyWebhook(BODY, standard, SECRET, { now: NOW })).id).to.equal('evt_7')
  })

  it('takes the id of a body without one from the Standard Webhooks signature, which covers it', async () => {
    const headers = delivered(SECRET, NOW / 1000, BODY_WITHOUT_ID)
    const event = await verifyWebhook(BODY_WITHOUT_ID, headers, SECRET, { now: NOW })
    expect(event).to.deep.equal({ ...CONTENT, id: 'evt_7' })
  })

  it('accepts any of several secrets', async () => {
    const next = `whsec_${randomBytes(24).toString('base64')}`
    for (const signed of [delivered(), delivered(next), without(delivered(next), /^webhook-/)])
      expect((await verifyWebhook(BODY, signed, [SECRET, next], { now: NOW })).id).to.equal('evt_7')
  })

  it('accepts headers of any case, as lists, and of another implementation of Headers', async () => {
    const headers = Object.entries(delivered())
    const upper = Object.fromEntries(headers.map(([name, value]) => [name.toUpperCase(), value]))
    const lists = Object.fromEntries(headers.map(([name, value]) => [name, [value]]))
    const known = new Map(headers)
    const foreign = { get: (name: string) => known.get(name) ?? null }
    for (const given of [upper, lists, foreign])
      expect((await verifyWebhook(BODY, given, SECRET, { now: NOW })).id).to.equal('evt_7')
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
    'a header that names another event than the signed body': () =>
      verifyWebhook(BODY, { ...delivered(), 'x-gateway-event-id': 'evt_8' }, SECRET, { now: NOW }),
    'a Standard Webhooks id that names another event than the signed body': () =>
      verifyWebhook(BODY, { ...delivered(), 'webhook-id': 'evt_8' }, SECRET, { now: NOW }),
    'an id that no signature covers': () =>
      verifyWebhook(BODY_WITHOUT_ID, without(delivered(SECRET, NOW / 1000, BODY_WITHOUT_ID), /^webhook-/), SECRET, {
        now: NOW,
      }),
    'another id than the signed one of a body without an id': () =>
      verifyWebhook(
        BODY_WITHOUT_ID,
        { ...delivered(SECRET, NOW / 1000, BODY_WITHOUT_ID), 'x-gateway-event-id': 'evt_8' },
        SECRET,
        { now: NOW },
      ),
    'no signature': () => verifyWebhook(BODY, without(delivered(), /signature/), SECRET, { now: NOW }),
  }
  for (const [what, verify] of Object.entries(refused)) {
    it(`refuses ${what}`, async () => {
      expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(WebhookError)
    })
  }

  it('refuses a body that is signed and no JSON', async () => {
    const body = Buffer.from('event')
    const error = await verifyWebhook(body, delivered(SECRET, NOW / 1000, body), SECRET, { now: NOW }).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(WebhookError)
  })

  it('throws TypeError for a missing or malformed secret and a parsed body, which are no forgeries', async () => {
    const secrets: unknown[] = ['', undefined, null, [], [''], 'whsec_', SECRET.slice(6), [SECRET, SECRET.slice(6)]]
    for (const secret of secrets) {
      const error = await verifyWebhook(BODY, delivered(), secret as string, { now: NOW }).catch(
        (thrown: unknown) => thrown,
      )
      expect(error).to.be.instanceOf(TypeError)
      expect((error as Error).message).to.equal('the webhook secret is missing, or not the whole whsec_… text')
    }
    const parsed = await verifyWebhook(JSON.parse(BODY.toString()) as string, delivered(), SECRET, { now: NOW }).catch(
      (thrown: unknown) => thrown,
    )
    expect(parsed).to.be.instanceOf(TypeError)
    expect((parsed as Error).message).to.include('before any parsing')
  })

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
