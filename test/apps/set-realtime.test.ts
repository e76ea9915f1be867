import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { setIdentity } from '#apps/set-identity.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { presentApp } from '#apps/present.ts'
import { secretPlace, type App } from '#apps/store.ts'
import { auditLog } from '#commands/store.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'
import { aServiceAccount, aServiceAccountFile } from '../support/service-account.ts'

const DATABASE = 'https://demo-proj-default-rtdb.asia-southeast1.firebasedatabase.app'

async function refusal(attempt: Promise<unknown>): Promise<{ code: string; field: string | null; message: string }> {
  const [result] = await Promise.allSettled([attempt])
  if (result.status === 'fulfilled') throw new Error('it was accepted')
  return result.reason as { code: string; field: string | null; message: string }
}

describe('an app without a server', () => {
  let ctx: TestContext
  let app: App
  beforeEach(async () => {
    ctx = testContext()
    app = (await anApp(ctx, { auth: 'identity' })).app
  })

  const audit = async (action: string) => (await ctx.db.one(auditLog, 'WHERE action = ?', [action]))!

  describe('app set-realtime', () => {
    const input = (changes: object = {}) => ({
      databaseUrl: DATABASE,
      serviceAccount: aServiceAccountFile(),
      ...changes,
    })

    it('stores address and path, and of the service account only what is needed, encrypted', async () => {
      const updated = await perform(ctx, operator('an'), setRealtime, input(), { app })
      expect(updated).to.include({ realtimeDatabaseUrl: DATABASE, realtimePath: 'users/{uid}/subscription' })
      expect(updated.realtimeServiceAccount).to.match(/^v1\.test\./)
      const place = secretPlace('realtime_service_account', app.apiKey)
      const opened = JSON.parse(ctx.keyring.open(updated.realtimeServiceAccount!, place)) as object
      expect(Object.keys(opened)).to.deep.equal(['type', 'project_id', 'client_email', 'private_key'])
    })

    it('keeps the path where a new account is given without one', async () => {
      const path = 'accounts/{uid}/billing'
      await perform(ctx, operator('an'), setRealtime, input({ path }), { app })
      expect(await perform(ctx, operator('an'), setRealtime, input(), { app })).to.include({ realtimePath: path })
    })

    it('accepts an account without a type', async () => {
      await perform(
        ctx,
        operator('an'),
        setRealtime,
        input({ serviceAccount: aServiceAccountFile({ type: undefined }) }),
        { app },
      )
    })

    it('does not show, audit or log the private key', async () => {
      const updated = await perform(ctx, operator('an'), setRealtime, input(), { app })
      const row = await audit('app.set-realtime')
      expect(row.actor).to.equal('an')
      const after = JSON.stringify(row.afterState)
      expect(after).to.contain(DATABASE).and.to.contain('svc@demo-proj.iam.gserviceaccount.com')
      const shown = JSON.stringify([row, presentApp(updated), ctx.logged])
      const secret = aServiceAccount().privateKey.split('\n')[3]!
      expect(shown).not.to.contain(secret)
      expect(shown).not.to.contain(updated.realtimeServiceAccount)
    })

    it('accepts another path, and the name of a database as ns', async () => {
      const databaseUrl = 'https://localhost:5443/?ns=demo-proj'
      const updated = await perform(ctx, operator('an'), setRealtime, input({ databaseUrl, path: 'p/{uid}' }), { app })
      expect(updated).to.include({ realtimeDatabaseUrl: databaseUrl, realtimePath: 'p/{uid}' })
    })

    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    const cases: readonly (readonly [what: string, changes: () => object, field: string])[] = [
      ['plain http to another host', () => ({ databaseUrl: 'http://db.example' }), 'databaseUrl'],
      ['a path in the address', () => ({ databaseUrl: `${DATABASE}/users` }), 'databaseUrl'],
      ['another query', () => ({ databaseUrl: `${DATABASE}/?auth=secret` }), 'databaseUrl'],
      ['a password in the address', () => ({ databaseUrl: 'https://a:b@db.example' }), 'databaseUrl'],
      ['no address', () => ({ databaseUrl: 'demo-proj' }), 'databaseUrl'],
      ['a path without {uid}', () => ({ path: 'users/subscription' }), 'path'],
      ['a path with {uid} twice', () => ({ path: '{uid}/{uid}' }), 'path'],
      ['a path with a forbidden key', () => ({ path: 'users/{uid}/a.b' }), 'path'],
      ['a path that begins with a slash', () => ({ path: '/users/{uid}' }), 'path'],
      ['a path deeper than the database nests', () => ({ path: `${'a/'.repeat(31)}{uid}` }), 'path'],
      ['no JSON', () => ({ serviceAccount: '-----BEGIN' }), 'serviceAccount'],
      ['JSON that is no object', () => ({ serviceAccount: '[]' }), 'serviceAccount'],
      [
        'credentials of another type, which could ask any address for tokens',
        () => ({ serviceAccount: aServiceAccountFile({ type: 'external_account' }) }),
        'serviceAccount.type',
      ],
      [
        'no private key',
        () => ({ serviceAccount: aServiceAccountFile({ private_key: undefined }) }),
        'serviceAccount.private_key',
      ],
      [
        'a broken private key',
        () => ({ serviceAccount: aServiceAccountFile({ private_key: 'x' }) }),
        'serviceAccount.private_key',
      ],
      [
        'a key that is not RSA',
        () => ({ serviceAccount: aServiceAccountFile({ private_key: ec.export({ type: 'pkcs8', format: 'pem' }) }) }),
        'serviceAccount.private_key',
      ],
      [
        'no e-mail',
        () => ({ serviceAccount: aServiceAccountFile({ client_email: '' }) }),
        'serviceAccount.client_email',
      ],
      ['a field that it does not have', () => ({ rules: {} }), 'rules'],
    ]
    for (const [what, changes, field] of cases) {
      it(`refuses ${what}, naming ${field}`, async () => {
        const error = await refusal(perform(ctx, operator('an'), setRealtime, input(changes()), { app }))
        expect(error).to.include({ code: 'invalid_request', field })
        expect(error.message).not.to.contain('BEGIN')
      })
    }

    it('accepts plain http only on loopback in development', async () => {
      await perform(ctx, operator('an'), setRealtime, input({ databaseUrl: 'http://127.0.0.1:9000?ns=demo-proj' }), {
        app,
      })
      const production = { ...ctx, config: { ...ctx.config, env: 'production' as const } }
      const error = await refusal(
        perform(production, operator('an'), setRealtime, input({ databaseUrl: 'http://127.0.0.1:9000' }), { app }),
      )
      expect(error).to.include({ code: 'invalid_request', field: 'databaseUrl' })
    })

    it('is for identity-token apps only', async () => {
      const hmac = (await anApp(ctx)).app
      const error = await refusal(perform(ctx, operator('an'), setRealtime, input(), { app: hmac }))
      expect(error.code).to.equal('invalid_request')
      expect(error.message).to.contain('only identity-token apps')
    })
  })

  describe('app set-identity', () => {
    const oidc = (changes: object = {}) => ({
      provider: 'oidc',
      issuer: 'https://issuer.example',
      audience: 'reader',
      jwksUrl: 'https://issuer.example/jwks',
      ...changes,
    })

    it('keeps a Firebase project or an OIDC issuer, with an audit entry', async () => {
      const firebase = await perform(
        ctx,
        operator('an'),
        setIdentity,
        { provider: 'firebase', projectId: 'demo-proj' },
        { app },
      )
      expect(firebase.identity).to.deep.equal({ provider: 'firebase', projectId: 'demo-proj' })
      const other = await perform(ctx, operator('an'), setIdentity, oidc(), { app: firebase })
      expect(other.identity).to.deep.equal(oidc())
      expect((await audit('app.set-identity')).afterState).to.have.nested.property('identity.projectId', 'demo-proj')
    })

    const cases: readonly (readonly [string, object, string])[] = [
      ['another provider', { provider: 'saml' }, 'provider'],
      ['no project', { provider: 'firebase' }, 'projectId'],
      ['a project id that is none', { provider: 'firebase', projectId: 'https://x' }, 'projectId'],
      ['no issuer', oidc({ issuer: undefined }), 'issuer'],
      ['an empty audience', oidc({ audience: '' }), 'audience'],
      ['a key set over plain http', oidc({ jwksUrl: 'http://issuer.example/jwks' }), 'jwksUrl'],
      ['a key set in a file', oidc({ jwksUrl: 'file:///etc/keys' }), 'jwksUrl'],
      ['fields of the other provider', oidc({ projectId: 'demo-proj' }), 'projectId'],
    ]
    for (const [what, input, field] of cases) {
      it(`refuses ${what}, naming ${field}`, async () => {
        expect(await refusal(perform(ctx, operator('an'), setIdentity, input, { app }))).to.include({
          code: 'invalid_request',
          field,
        })
      })
    }

    it('accepts a key set over http only on loopback in development', async () => {
      const local = oidc({ jwksUrl: 'http://localhost:9000/jwks' })
      await perform(ctx, operator('an'), setIdentity, local, { app })
      const production = { ...ctx, config: { ...ctx.config, env: 'production' as const } }
      expect(await refusal(perform(production, operator('an'), setIdentity, local, { app }))).to.include({
        field: 'jwksUrl',
      })
    })

    it('is for identity-token apps only', async () => {
      const hmac = (await anApp(ctx)).app
      const error = await refusal(perform(ctx, operator('an'), setIdentity, oidc(), { app: hmac }))
      expect(error.message).to.contain('only identity-token apps')
    })
  })
})
