import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { newWebhookSecret } from '#shared/crypto.ts'
import { signingKeys, webhookHeaders } from '#webhooks/signature.ts'

const SECRET = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
const DELIVERY = {
  eventId: 42,
  eventType: 'subscription.updated',
  attempt: 3,
  timestamp: 1767225600,
  body: Buffer.from(
    '{"event_type":"subscription.updated","app_id":1,"data":{"name":"Nguy\u1ec5n"},"created_at":"2026-01-01T00:00:00+00:00"}',
  ),
}

describe('webhook signatures', () => {
  it('carry the fixed headers of a delivery', () => {
    const headers = webhookHeaders(signingKeys(SECRET), DELIVERY)
    expect(headers).to.deep.include({
      'Content-Type': 'application/json',
      'User-Agent': 'Paygate-Webhooks/1',
      'X-Gateway-Timestamp': '1767225600',
      'X-Gateway-Event-Id': 'evt_42',
      'X-Gateway-Event-Type': 'subscription.updated',
      'X-Gateway-Attempt': '3',
      'webhook-id': 'evt_42',
      'webhook-timestamp': '1767225600',
    })
    expect(Object.keys(headers)).to.have.length(10)
  })

  it('agree with the published vectors', () => {
    const headers = webhookHeaders(signingKeys(SECRET), DELIVERY)
    expect(headers['X-Gateway-Signature']).to.equal('438075b63a60d80f5b652f5813ab46bb4fb6bf1cdca4ab13db38f2b1209f21dd')
    expect(headers['webhook-signature']).to.equal('v1,kjMN2uGKoAyxs1Ta5DPGdLEb7Gl519t6WO3JIc2qsTI=')
  })

  it('key X-Gateway-Signature with the whole secret over timestamp and raw body', () => {
    const secret = newWebhookSecret()
    const expected = createHmac('sha256', Buffer.from(secret, 'utf8'))
      .update(Buffer.concat([Buffer.from('1767225600.'), DELIVERY.body]))
      .digest('hex')
    expect(webhookHeaders(signingKeys(secret), DELIVERY)['X-Gateway-Signature']).to.equal(expected)
  })

  it('key webhook-signature with the decoded part of the secret over id, timestamp and raw body', () => {
    const secret = newWebhookSecret()
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    expect(key).to.have.length(32)
    const expected = createHmac('sha256', key)
      .update(Buffer.concat([Buffer.from('evt_42.1767225600.'), DELIVERY.body]))
      .digest('base64')
    expect(webhookHeaders(signingKeys(secret), DELIVERY)['webhook-signature']).to.equal(`v1,${expected}`)
  })

  it('cover bytes: a body that is not UTF-8 is signed unchanged', () => {
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x7d])
    const expected = createHmac('sha256', SECRET).update('1767225600.').update(body).digest('hex')
    expect(webhookHeaders(signingKeys(SECRET), { ...DELIVERY, body })['X-Gateway-Signature']).to.equal(expected)
  })

  it('change with secret, timestamp and body', () => {
    const signature = (secret: string, change: Partial<typeof DELIVERY>) =>
      webhookHeaders(signingKeys(secret), { ...DELIVERY, ...change })['X-Gateway-Signature']
    const all = [
      signature(SECRET, {}),
      signature(newWebhookSecret(), {}),
      signature(SECRET, { timestamp: DELIVERY.timestamp + 1 }),
      signature(SECRET, { body: Buffer.from('{}') }),
    ]
    expect(new Set(all)).to.have.property('size', 4)
  })
})
