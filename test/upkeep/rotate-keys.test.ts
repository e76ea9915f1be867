import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { cardAccounts } from '#providers/card/accounts.ts'
import { getApp, secretPlace, apps } from '#apps/store.ts'
import { listAuditEntries } from '#commands/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { rotateKeys } from '#upkeep/rotate-keys.ts'
import { listAppSecrets, replaceSealed } from '#upkeep/store.ts'
import { parseKeyring } from '#shared/crypto.ts'
import { enableMethod } from '../support/operators.ts'
import { TEST_KEYS, testContext, type TestContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'

const NEW_KEY = `new:${Buffer.alloc(32, 9).toString('base64')}`

/** Two apps with webhook secrets, one of them with card credentials: five secrets. */
async function fiveSecrets(ctx: TestContext) {
  const first = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
  const second = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
  await enableMethod(ctx, 'mai', first.app, 'card', { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' })
  return [first, second] as const
}

describe('key rotate', () => {
  it('re-encrypts every secret under the first key: afterwards the new key decrypts all of them, and the old key none', async () => {
    const ctx = testContext()
    const [first] = await fiveSecrets(ctx)
    const both = { ...ctx, keyring: parseKeyring(`${NEW_KEY},${TEST_KEYS}`) }
    expect(await rotateKeys(both, operator('mai'))).to.deep.equal({ rotated: 5, already_current: 0 })
    const onlyNew = { ...ctx, keyring: parseKeyring(NEW_KEY) }
    const { apiSecret, apiKey } = await getApp(ctx.db, first.app.id)
    expect(onlyNew.keyring.open(apiSecret!, secretPlace('api_secret', apiKey))).to.equal(first.secret)
    expect((await cardAccounts.current(onlyNew, first.app.id))?.credentials).to.deep.equal({
      secretKey: 'sk_test_1',
      webhookSecret: 'whsec_1',
    })
    expect(() => ctx.keyring.open(apiSecret!, secretPlace('api_secret', apiKey))).to.throw('needs encryption key "new"')
  })

  it('continues where it was interrupted, and has nothing to do when run again', async () => {
    const ctx = testContext()
    await fiveSecrets(ctx)
    const both = { ...ctx, keyring: parseKeyring(`${NEW_KEY},${TEST_KEYS}`) }
    const crash = (report: { rotated: number }) => {
      if (report.rotated > 0) throw new Error('power cut')
    }
    await rotateKeys(both, operator('mai'), { onProgress: crash }).catch(() => undefined)
    const seen: object[] = []
    expect(await rotateKeys(both, operator('mai'), { onProgress: (report) => seen.push(report) })).to.deep.equal({
      rotated: 1,
      already_current: 4,
    })
    expect(seen.at(-1)).to.deep.equal({ rotated: 1, already_current: 4 })
    expect(await rotateKeys(both, operator('mai'))).to.deep.equal({ rotated: 0, already_current: 5 })
  })

  it('rotates the others when a key is missing, and names each secret that cannot be decrypted', async () => {
    const ctx = testContext()
    const [first] = await fiveSecrets(ctx)
    const lost = parseKeyring(`lost:${Buffer.alloc(32, 3).toString('base64')}`)
    const sealed = lost.seal('whsec_lost', secretPlace('webhook_secret', first.apiKey))
    await ctx.db.update(apps, { id: first.app.id }, { webhookSecret: sealed })
    const both = { ...ctx, keyring: parseKeyring(`${NEW_KEY},${TEST_KEYS}`) }
    const error = await rotateKeys(both, operator('mai')).catch((thrown: unknown) => thrown as Error)
    expect((error as Error).message).to.match(/^1 secret cannot be decrypted, 4 others were rotated: /)
    expect((error as Error).message).to.include(`the webhook_secret of app ${first.app.id}`)
    expect((error as Error).message).to.include('needs encryption key "lost"')
  })

  it('leaves a secret that was replaced after it was read as it was set', async () => {
    const ctx = testContext()
    const [first] = await fiveSecrets(ctx)
    const { secrets } = await listAppSecrets(ctx.db, first.app.id - 1, 1)
    await ctx.db.update(apps, { id: first.app.id }, { webhookSecret: 'set meanwhile' })
    await inTransaction(ctx, async (tx) => {
      for (const secret of secrets) await replaceSealed(tx, secret, 'sealed anew')
    })
    const { apiSecret, webhookSecret } = await getApp(ctx.db, first.app.id)
    expect({ apiSecret, webhookSecret }).to.deep.equal({ apiSecret: 'sealed anew', webhookSecret: 'set meanwhile' })
  })

  it('the audit log records who rotated to which key', async () => {
    const ctx = testContext()
    await fiveSecrets(ctx)
    await rotateKeys({ ...ctx, keyring: parseKeyring(`${NEW_KEY},${TEST_KEYS}`) }, operator('mai'))
    const [entry] = await listAuditEntries(ctx.db, { subject: 'key new', limit: 1 })
    expect(entry).to.include({ actor: 'mai', action: 'key.rotate' })
    expect(entry?.afterState).to.deep.equal({ rotated: 5, already_current: 0 })
  })
})
