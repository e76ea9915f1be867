import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { apps } from '#apps/store.ts'
import { pendingMigrations } from '#db/migrate.ts'
import { checkSecrets } from '#doctor/check-secrets.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { testContext } from '../support/context.ts'
import { CLIENT_PROGRAM, DUMP_PROGRAM } from '../support/database-server.ts'
import { openEmptyDatabase, testDatabase } from '../support/database.ts'
import { anApp, aPlan, aSubscription } from '../support/factories.ts'

describe('backup and restore (docs/operating.md)', () => {
  it('a dump that is restored into another database has a clean ledger and secrets that can be decrypted', async () => {
    const ctx = testContext()
    const app = await anApp(ctx, { name: 'Đọc sách', webhookUrl: 'http://127.0.0.1:9/hooks' })
    const plan = await aPlan(ctx, app)
    for (const user of ['user-1', 'user-2']) await aSubscription(ctx, app, plan, { external_ref: user })
    const { name, socketPath } = testDatabase()
    const server = [`--socket=${socketPath}`, '--user=root']
    const dump = execFileSync(DUMP_PROGRAM, [...server, '--single-transaction', name])
    const restored = await openEmptyDatabase('restored')
    try {
      execFileSync(CLIENT_PROGRAM, [...server, restored.name], { input: dump })
      const restoredCtx = { ...ctx, db: restored.db }
      expect(await pendingMigrations(restored.db)).to.deep.equal([])
      expect(await verifyLedger(restoredCtx, null)).to.deep.equal({ checked: 2, faults: [] })
      expect(await checkSecrets(restoredCtx)).to.deep.equal([
        { check: 'keys', ok: true, detail: '2 secrets can be decrypted with key "test"', fix: null },
      ])
      expect((await restored.db.one(apps, ''))?.name).to.equal('Đọc sách')
    } finally {
      await restored.drop()
    }
  })
})
