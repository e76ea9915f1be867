import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { activateWebhookSecret, prepareWebhookSecret, rotateSecret, rotateWebhookSecret } from '#apps/rotate-secret.ts'
import { getApp, secretPlace } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { rotateKeys } from '#upkeep/rotate-keys.ts'
import { sendTestEvent } from '#webhooks/send-test-event.ts'
import { startService, type TestService } from '../support/api.ts'
import { TEST_KEYS } from '../support/context.ts'
import { anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'

const HOUR = 3600
const CALLER = operator('mai')

describe('secrets that overlap', () => {
  let service: TestService
  let app: TestApp
  let receiver: Receiver
  beforeEach(async () => {
    receiver = await Receiver.start()
    service = await startService()
    app = await anApp(service.ctx, { sandbox: false, webhookUrl: receiver.url })
    receiver.secret = app.webhookSecret
  })
  afterEach(async () => {
    await service.stop()
    await receiver.stop()
  })

  const load = () => getApp(service.ctx.db, app.app.id)

  async function rotate(input: { overlap_seconds?: number } = {}): Promise<string> {
    return (await perform(service.ctx, CALLER, rotateSecret, input, { app: await load() })).api_secret
  }

  /** The statuses of a call signed with each of the secrets. */
  async function statuses(...secrets: readonly string[]): Promise<number[]> {
    const answers = []
    for (const secret of secrets) answers.push((await service.seller({ ...app, secret }).get('/api/v1/plans')).status)
    return answers
  }

  it('an API secret that is replaced with an overlap is valid until the overlap ends, and no longer', async () => {
    const second = await rotate({ overlap_seconds: 24 * HOUR })
    const third = await rotate({ overlap_seconds: 48 * HOUR })
    expect(await statuses(app.secret, second, third, app.secret)).to.deep.equal([200, 200, 200, 200])
    service.ctx.clock.advance('24h')
    expect(await statuses(app.secret, second, third)).to.deep.equal([401, 200, 200])
    service.ctx.clock.advance('24h')
    expect(await statuses(app.secret, second, third)).to.deep.equal([401, 401, 200])
  })

  it('a rotation without an overlap voids every earlier secret at once', async () => {
    const second = await rotate({ overlap_seconds: HOUR })
    const third = await rotate()
    expect(await statuses(app.secret, second, third)).to.deep.equal([401, 401, 200])
    expect((await load()).earlierApiSecrets).to.equal(null)
  })

  it('of two rotations at once both secrets are valid, although each read the app before the other', async () => {
    const before = await load()
    const rotated = () => perform(service.ctx, CALLER, rotateSecret, { overlap_seconds: HOUR }, { app: before })
    const [one, other] = await Promise.all([rotated(), rotated()])
    expect(await statuses(app.secret, one.api_secret, other.api_secret)).to.deep.equal([200, 200, 200])
  })

  it('an overlap is at least a second and at most seven days', async () => {
    for (const seconds of [0, -1, 1.5, 7 * 24 * HOUR + 1]) {
      const refused = await rotate({ overlap_seconds: seconds }).catch((error: unknown) => error)
      expect(refused, String(seconds)).to.include({ code: 'invalid_request', field: 'overlap_seconds' })
    }
    await rotate({ overlap_seconds: 7 * 24 * HOUR })
    expect(await statuses(app.secret)).to.deep.equal([200])
  })

  it('a prepared webhook secret signs nothing before it is activated, and everything after', async () => {
    const next = await perform(service.ctx, CALLER, prepareWebhookSecret, undefined, { app: await load() })
    const received = async () => {
      receiver.received.length = 0
      await sendTestEvent(service.ctx, CALLER, await load())
      return receiver.received.map(({ verified }) => verified)
    }
    expect(await received()).to.deep.equal([true])
    const activated = await perform(service.ctx, CALLER, activateWebhookSecret, undefined, { app: await load() })
    expect(activated, 'it was shown when it was prepared').to.deep.equal({ webhook_secret: null })
    expect(await received()).to.deep.equal([false])
    receiver.secret = next.webhook_secret
    expect(await received()).to.deep.equal([true])
  })

  it('a rotation discards a prepared webhook secret, and only a prepared one is activated', async () => {
    await perform(service.ctx, CALLER, prepareWebhookSecret, undefined, { app: await load() })
    await perform(service.ctx, CALLER, rotateWebhookSecret, undefined, { app: await load() })
    const refused = await perform(service.ctx, CALLER, activateWebhookSecret, undefined, { app: await load() }).catch(
      (error: unknown) => error,
    )
    expect(refused).to.include({ code: 'invalid_request' })
  })

  it('earlier and prepared secrets are encrypted anew with the others when keys are rotated', async () => {
    const { ctx } = service
    await rotate({ overlap_seconds: HOUR })
    const next = await perform(ctx, CALLER, prepareWebhookSecret, undefined, { app: await load() })
    const newKey = `new:${Buffer.alloc(32, 9).toString('base64')}`
    const both = { ...ctx, keyring: parseKeyring(`${newKey},${TEST_KEYS}`) }
    expect(await rotateKeys(both, CALLER)).to.include({ rotated: 4 })
    const onlyNew = parseKeyring(newKey)
    const { apiKey, earlierApiSecrets, nextWebhookSecret } = await load()
    expect(onlyNew.open(earlierApiSecrets!, secretPlace('earlier_api_secrets', apiKey))).to.include(app.secret)
    expect(onlyNew.open(nextWebhookSecret!, secretPlace('next_webhook_secret', apiKey))).to.equal(next.webhook_secret)
  })
})
