import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { MIGRATIONS, pendingMigrations, runMigrations } from '#db/migrate.ts'
import { productVersion } from '#product-version.ts'
import { copyInstalled, refuseToMigrateIn, serveCopy, servedCopy, type ProgramFolders } from '#setup/program-copies.ts'
import { previewUpgrade, upgradePackage, type Service } from '#setup/upgrade-package.ts'
import { realTimeContext } from '../support/context.ts'
import { openEmptyDatabase, type EmptyDatabase } from '../support/database.ts'
import { refusalOf } from '../support/expect-error.ts'
import { anApp } from '../support/factories.ts'
import { checkOutput } from '../cli/outputs.ts'
import { scratchFolder } from '../support/scratch.ts'

/** What a daemon loads after its start. */
const LATE = 'jobs/late.ts'

describe('an upgrade by the package', () => {
  let folders: ProgramFolders
  let service: FakeService
  let ctx: Context
  let database: EmptyDatabase

  before(async () => {
    database = await openEmptyDatabase('package')
    ctx = { ...realTimeContext({ BILLING_BACKUP_DIR: scratchFolder('backups') }), db: database.db }
    await runMigrations(ctx.db)
    await anApp(ctx)
  })

  after(() => database.drop())

  beforeEach(async () => {
    const root = scratchFolder('program')
    folders = { installed: join(root, 'paygate'), versions: join(root, 'versions') }
    install('1.0.0')
    serveCopy(folders, await copyInstalled(folders))
    service = new FakeService(folders)
    await service.restart()
  })

  /** Replaces files as dpkg does. */
  function install(version: string): void {
    const files = { 'package.json': JSON.stringify({ version }), [LATE]: version }
    mkdirSync(join(folders.installed, 'jobs'), { recursive: true })
    for (const [path, content] of Object.entries(files)) {
      const file = join(folders.installed, path)
      writeFileSync(`${file}.dpkg-new`, content)
      renameSync(`${file}.dpkg-new`, file)
    }
  }

  const steps: string[] = []
  const upgrade = async (own: Context = ctx, isWithoutBackup = false) => {
    const options = { folders, isWithoutBackup, onStep: (text: string) => steps.push(text), readyMs: 300 }
    const upgraded = await upgradePackage(own, service, options)
    // The command prints this where the package is installed.
    checkOutput(['upgrade', '--json'], { code: 0, stdout: JSON.stringify(upgraded) })
    return upgraded
  }
  const copies = () => readdirSync(folders.versions).filter((entry) => !entry.startsWith('current'))
  /** The newest migration is pending again; each can be run twice. */
  const forgetNewest = () => ctx.db.run('DELETE FROM migrations WHERE name = ?', [MIGRATIONS.at(-1)?.name ?? ''])

  it('leaves what serves as it is while a newer version is installed', async () => {
    install('2.0.0')
    expect(service.read(LATE)).to.equal('1.0.0')
    await service.restart()
    expect(service.read(LATE), 'after a crash, too').to.equal('1.0.0')
  })

  it('migrates below the version that serves, then starts the installed one, and keeps no other', async () => {
    install('2.0.0')
    await forgetNewest()
    service.onRestart = async () => expect(await pendingMigrations(ctx.db)).to.deep.equal([])
    const { seconds, ...upgraded } = await upgrade()
    const newest = [MIGRATIONS.at(-1)?.name]
    expect(upgraded).to.deep.equal({ status: 'upgraded', from: '1.0.0', to: '2.0.0', applied: newest })
    expect(seconds).to.be.at.least(0)
    expect(service.read(LATE)).to.equal('2.0.0')
    expect(copies()).to.have.length(1)
    expect(await upgrade()).to.include({ status: 'unchanged', from: '2.0.0', to: '2.0.0' })
    expect(service.starts).to.equal(2)
  })

  it('is no work of the version that serves, as an operator’s ssh runs it: migrate is refused there', async () => {
    const served = servedCopy(folders)!
    refuseToMigrateIn(served, folders)
    install('2.0.0')
    const refused = await refusalOf(Promise.resolve().then(() => refuseToMigrateIn(served, folders)))
    expect([refused.code, refused.message]).to.deep.equal([
      'invalid_request',
      'version 2.0.0 is installed, and this is 1.0.0: run billing-cli migrate as root on the machine itself',
    ])
    refuseToMigrateIn(folders.installed, folders)
  })

  it('can be previewed, which changes nothing', async () => {
    const preview = () => previewUpgrade(ctx, service, { folders, isWithoutBackup: false })
    expect(await preview()).to.deep.equal({
      answer: { from: '1.0.0', to: '1.0.0' },
      effects: ['no migration is pending', 'version 1.0.0 serves already: it is not restarted'],
    })
    install('2.0.0')
    await forgetNewest()
    const newest = [MIGRATIONS.at(-1)!.name]
    expect(await preview()).to.deep.equal({
      answer: { from: '1.0.0', to: '2.0.0' },
      effects: [`applies 1 migration: ${newest[0]}`, 'starts version 2.0.0 instead of 1.0.0'],
    })
    expect([service.starts, service.read(LATE), copies().length]).to.deep.equal([1, '1.0.0', 1])
    expect(await pendingMigrations(ctx.db)).to.deep.equal(newest)
    await upgrade()
  })

  it('goes back to the version before where the new one does not start, or is not ready', async () => {
    for (const isStarting of [false, true]) {
      install('2.0.0')
      service.unhealthy = { version: '2.0.0', isStarting }
      const { code, message } = await refusalOf(upgrade())
      expect(code).to.equal('service_unavailable')
      expect(message).to.match(/^version 2\.0\.0 does not serve \(.*\); journalctl .*\. Version 1\.0\.0 serves again/)
      expect(await service.isReady()).to.equal(true)
      expect(service.read(LATE)).to.equal('1.0.0')
      expect(copies()).to.have.length(1)
    }
    install('2.0.1')
    expect(await upgrade()).to.include({ status: 'upgraded', from: '1.0.0', to: '2.0.1' })
  })

  it('restarts nothing where the new version cannot start beside the one that serves', async () => {
    install('2.0.0')
    service.check = () => Promise.reject(new Error('a module is missing'))
    expect((await refusalOf(upgrade())).message).to.equal(
      'version 2.0.0 cannot start (a module is missing): nothing was restarted',
    )
    expect([service.starts, service.read(LATE), copies().length]).to.deep.equal([1, '1.0.0', 1])
    await service.restart()
    expect(service.read(LATE)).to.equal('1.0.0')
  })

  it('says so where neither version serves, and where there is none before', async () => {
    install('2.0.0')
    service.unhealthy = { version: '', isStarting: false }
    expect((await refusalOf(upgrade())).message).to.include('Version 1.0.0 does not serve either')
    service.unhealthy = null
    await upgrade()
    service.unhealthy = { version: '2.0.0', isStarting: true }
    expect((await refusalOf(upgrade())).message).to.include('no previous version to go back to')
  })

  it('that was interrupted is finished by the next one, which can still go back', async () => {
    install('2.0.0')
    serveCopy(folders, await copyInstalled(folders))
    service.unhealthy = { version: '2.0.0', isStarting: false }
    expect((await refusalOf(upgrade())).message).to.include('Version 1.0.0 serves again')
    serveCopy(folders, await copyInstalled(folders))
    service.unhealthy = null
    expect(await upgrade()).to.include({ status: 'upgraded', from: '1.0.0', to: '2.0.0' })
  })

  it('that was interrupted after its restart, even twice, is finished or taken back by the next one', async () => {
    for (const isStarting of [false, true]) {
      install('2.0.0')
      service.unhealthy = { version: '2.0.0', isStarting }
      for (let interrupted = 0; interrupted < 2; interrupted += 1) await interruptedUpgrade()
      expect(productVersion(servedCopy(folders)!)).to.equal('2.0.0')
      expect((await refusalOf(upgrade())).message).to.include('Version 1.0.0 serves again')
      expect([service.read(LATE), copies()]).to.deep.equal(['1.0.0', [basename(service.running!)]])
    }
    await interruptedUpgrade()
    service.unhealthy = null
    expect(await upgrade()).to.include({ status: 'unchanged', from: '2.0.0' })
    expect(copies()).to.deep.equal([basename(service.running!)])
  })

  /** Ends once the service was restarted: the upgrade is killed, so that nothing comes after it. */
  async function interruptedUpgrade(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<null>()
    service.onRestarted = () => {
      resolve(null)
      return new Promise(() => {})
    }
    void upgrade()
    await promise
    service.onRestarted = () => Promise.resolve()
  }

  it('starts a service that was stopped', async () => {
    service.running = null
    expect(await upgrade()).to.include({ status: 'upgraded', from: '1.0.0', to: '1.0.0' })
    expect(await service.isReady()).to.equal(true)
  })

  it('in production restarts nothing without a verified backup, where migrations are pending', async () => {
    install('2.0.0')
    await forgetNewest()
    const production: Context = { ...ctx, config: { ...ctx.config, env: 'production' } }
    const preview = () => previewUpgrade(production, service, { folders, isWithoutBackup: false })
    for (const tries of [preview, () => upgrade(production)])
      expect((await refusalOf(tries())).message).to.include('a verified backup of the last 24 hours is needed')
    expect([service.starts, service.read(LATE)]).to.deep.equal([1, '1.0.0'])
    expect(await upgrade(production, true)).to.include({ status: 'upgraded', to: '2.0.0' })
  })
})

/** A service that reads files of its program late, as a daemon does. */
class FakeService implements Service {
  readonly #folders: ProgramFolders
  starts = 0
  running: string | null = null
  /** Of which version a daemon does not start, or starts and is not ready; of an empty one, every version. */
  unhealthy: { readonly version: string; readonly isStarting: boolean } | null = null
  onRestart: () => Promise<unknown> = () => Promise.resolve()
  onRestarted: () => Promise<unknown> = () => Promise.resolve()
  check: () => Promise<unknown> = () => Promise.resolve()

  constructor(folders: ProgramFolders) {
    this.#folders = folders
  }

  read(path: string): string {
    return readFileSync(join(this.running!, path), 'utf8')
  }

  programFolder(): Promise<string | null> {
    return Promise.resolve(this.running)
  }

  async restart(): Promise<void> {
    await this.onRestart()
    this.starts += 1
    const copy = servedCopy(this.#folders)
    this.running = this.#isUnhealthy(copy) && !this.unhealthy?.isStarting ? null : copy
    await this.onRestarted()
    if (this.running === null) throw new Error('it ended at once')
  }

  isReady(): Promise<boolean> {
    return Promise.resolve(this.running !== null && !this.#isUnhealthy(this.running))
  }

  #isUnhealthy(copy: string | null): boolean {
    return copy !== null && ['', productVersion(copy)].includes(this.unhealthy?.version ?? 'none')
  }
}
