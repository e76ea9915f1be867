import { expect } from 'chai'
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, afterEach, before, describe, it } from 'mocha'
import { useFakeTimers } from 'sinon'
import { openDatabase } from '#db/connect.ts'
import { EXPANDING, pendingMigrations } from '#db/migrate.ts'
import { logTail } from '#embedded/log-tail.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { startEmbedded } from '#embedded/start-embedded.ts'
import { processesWith } from '../support/processes.ts'
import { until } from '../support/until.ts'

const USER = join(import.meta.dirname, 'database-user.ts')
const LISTENING = '0A'
const NOBODY = 65_534

describe('the embedded database', () => {
  let directory: string
  let home: string
  const users: User[] = []

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'paygate-embedded-'))
    home = join(directory, 'home')
  })

  afterEach(async () => {
    for (const user of users.splice(0)) await user.kill()
    await nothingRuns(directory)
  })

  after(() => rmSync(directory, { recursive: true, force: true }))

  async function startUser(at: string = home): Promise<User> {
    const user = spawnUser(at)
    users.push(user)
    await user.using()
    return user
  }

  it('in production is given its tables while it is new, and migrated by operators alone afterwards', async () => {
    const config = { databaseUrl: null, home: join(directory, 'production') }
    const newest = EXPANDING.at(-1)?.name ?? ''
    const { db, close } = await openDatabase({ ...config, env: 'production' })
    const pendingFor = async (env: 'development' | 'production') => {
      await (await openDatabase({ ...config, env })).close()
      return pendingMigrations(db)
    }
    try {
      expect(await pendingMigrations(db)).to.deep.equal([])
      await db.run('DELETE FROM migrations WHERE name = ?', [newest])
      expect(await pendingFor('production')).to.deep.equal([newest])
      expect(await pendingFor('development')).to.deep.equal([])
    } finally {
      await close()
    }
  })

  it('is created and started once, however many processes start it at the same time, and shared: what one writes, another reads', async () => {
    const [one, other] = await Promise.all([1, 2, 3, 4].map(() => startUser()))
    expect(serversOf(home)).to.have.lengthOf(1)
    expect(supervisorsOf(home)).to.have.lengthOf(1)
    await one!.ask('write shared')
    expect(await other!.ask('read')).to.include('shared')
  })

  it('of another user’s home is run by that user, where root uses it', async () => {
    // Only root can become another user.
    if (process.getuid?.() !== 0) return
    const owned = join(directory, 'owned')
    chmodSync(directory, 0o755)
    mkdirSync(owned, { mode: 0o700 })
    chownSync(owned, NOBODY, NOBODY)
    const user = await startUser(owned)
    await user.ask('write owned')
    for (const pid of [...serversOf(owned), ...supervisorsOf(owned)])
      expect(statSync(`/proc/${pid}`).uid, String(pid)).to.equal(NOBODY)
    const files = globSync('**/*', { cwd: owned }).map((path) => lstatSync(join(owned, path)).uid)
    expect([...new Set(files)]).to.deep.equal([NOBODY])
  })

  it('runs until its last user is gone, and keeps its data', async () => {
    const first = await startUser()
    const second = await startUser()
    const servers = serversOf(home)
    await first.ask('write lasting')
    await first.ask('release')
    await first.kill()
    expect(await second.ask('read')).to.include('lasting')
    expect(serversOf(home)).to.deep.equal(servers)
    await second.ask('release')
    await nothingRuns(directory)

    const next = await startUser()
    expect(await next.ask('read')).to.include('lasting')
  })

  it('is started once for a first user that still loads its code when the server is there', async () => {
    const starting = startEmbedded(home)
    const { serverSocket } = embeddedSetup(home)
    // Blocks the event loop, as the evaluation of modules does.
    const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    while (!existsSync(serverSocket)) block(10)
    block(1000)
    const servers = serversOf(home)
    const { release } = await starting
    const used = serversOf(home)
    release()
    expect(used).to.have.lengthOf(1).and.to.deep.equal(servers)
  })

  it('can be used again by a user that released it', async () => {
    const one = await startEmbedded(home)
    const two = await startEmbedded(home)
    one.release()
    expect(two.connection).to.deep.equal(one.connection)
    const again = await startEmbedded(home)
    two.release()
    expect(serversOf(home)).to.have.lengthOf(1)
    again.release()
    await nothingRuns(directory)
  })

  it('is restarted for its users when its supervisor is killed, and when the server is, with all committed data', async () => {
    const user = await startUser()
    await user.ask('write kept')
    const servers = serversOf(home)
    process.kill(supervisorsOf(home)[0]!, 'SIGKILL')
    await until(() => serversOf(home).length === 1 && serversOf(home)[0] !== servers[0])
    await until(async () => (await user.ask('read')).includes('kept'))

    await user.ask('write safe')
    process.kill(serversOf(home)[0]!, 'SIGKILL')
    await until(async () => (await user.ask('read')).includes('safe'))
    expect(serversOf(home)).to.have.lengthOf(1)
  })

  it('stops when user and supervisor are killed together, and starts again with all committed data', async () => {
    const user = await startUser()
    await user.ask('write whole')
    process.kill(supervisorsOf(home)[0]!, 'SIGKILL')
    await user.kill()
    const next = await startUser()
    expect(serversOf(home)).to.have.lengthOf(1)
    expect(await next.ask('read')).to.include('whole')
    await next.kill()
    await nothingRuns(directory)
  })

  it('listens on a UNIX socket only, in directories that only its owner can enter, and stops when its users are killed', async () => {
    const [user, other] = await Promise.all([startUser(), startUser()])
    const [pid] = serversOf(home)
    expect(listeningSockets(pid!)).to.deep.equal([])
    for (const path of [home, join(home, 'database'), join(home, 'database', 'tmp'), join(home, 'database', 'data')]) {
      expect((statSync(path).mode & 0o777).toString(8), path).to.equal('700')
    }
    const settings = JSON.parse((await user.using()).replace('using ', '')) as Record<string, unknown>
    expect(settings).to.include({ alone: 1 })
    for (const each of [user, other]) await each.kill()
    await nothingRuns(directory)
  })

  it('works in a home with blanks and quotes whose path is longer than a socket’s may be', async () => {
    const deep = join(directory, `it's "my" home`, 'a'.repeat(120), 'b c'.repeat(40))
    const user = await startUser(deep)
    expect(await user.ask('write here')).to.equal('here')
    await user.kill()
    await nothingRuns(directory)
    expect(await (await startUser(deep)).ask('read')).to.equal('here')
    const { supervisorSocket } = embeddedSetup(deep)
    expect(Buffer.byteLength(supervisorSocket)).to.be.below(104)
    rmSync(join(supervisorSocket, '..'), { recursive: true })
  })

  it('is the same for two spellings of a home', () => {
    mkdirSync(join(directory, 'plain'))
    expect(embeddedSetup(join(directory, 'x', '..', 'plain'))).to.deep.equal(embeddedSetup(join(directory, 'plain')))
  })

  it('is created again after a kill during its creation', async () => {
    const fresh = join(directory, 'fresh')
    const user = spawnUser(fresh)
    users.push(user)
    await until(() => globSync(join(fresh, 'database', 'installing-*', '*')).length > 0)
    process.kill(supervisorsOf(fresh)[0]!, 'SIGKILL')
    await user.kill()
    expect(existsSync(join(fresh, 'database', 'data'))).to.equal(false)

    const next = await startUser(fresh)
    expect(await next.ask('write new')).to.equal('new')
    expect(globSync(join(fresh, 'database', 'installing-*'))).to.deep.equal([])
  })

  it('reports the end of its log if it cannot start', async () => {
    const broken = join(directory, 'broken')
    embeddedSetup(broken)
    writeFileSync(join(broken, 'database', 'data'), 'no directory')
    const error = await startEmbedded(broken).then(
      () => expect.fail('it started'),
      (thrown: unknown) => thrown as Error,
    )
    expect(error.message)
      .to.include('the embedded database does not start')
      .and.to.match(/Can't change dir|Not a directory/)
  })

  it('is not waited for longer than 120 s, where its supervisor hangs and never answers', async () => {
    const hanging = join(directory, 'hanging')
    const listener = createServer().listen(embeddedSetup(hanging).supervisorSocket)
    await once(listener, 'listening')
    const clock = useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    try {
      const started = startEmbedded(hanging).catch(String)
      await until(() => clock.countTimers() > 0)
      clock.tick(120_000)
      expect(await started).to.include('the embedded database did not start in 120 s')
    } finally {
      clock.restore()
      listener.close()
    }
  })

  it('says why it cannot start: the error in its log, not the advice behind it', () => {
    const file = join(directory, 'server.log')
    const advice = Array.from({ length: 30 }, (_, line) => `advice ${line}`)
    const error = '2026-11-30  0:09:19 0 [ERROR] InnoDB: preallocating 268435456 bytes failed with error 28'
    writeFileSync(file, [error, ...advice, ''].join('\n'))
    expect(logTail(file)).to.equal(error)
    writeFileSync(file, [error, ...advice, ...advice].join('\n'))
    expect(logTail(file), 'an old error').to.equal(advice.slice(-12).join('\n'))
    writeFileSync(file, '[Note] starting\n')
    expect(logTail(file)).to.equal('[Note] starting')
  })

  it('is run by the family of servers that made it, whatever was installed since', () => {
    const at = join(directory, 'made')
    const [newer, older] = [join(directory, 'newer'), join(directory, 'older')]
    for (const [folder, name, version] of [
      [newer, 'mysqld', 'MySQL'],
      [older, 'mariadbd', 'MariaDB'],
      [older, 'mariadb-install-db', 'MariaDB'],
    ] as const) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, name), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 })
    }
    expect(embeddedSetup(at, [newer, older]).server[0]).to.equal(join(newer, 'mysqld'))
    mkdirSync(join(at, 'database', 'data'))
    writeFileSync(join(at, 'database', 'data', 'aria_log_control'), '')
    expect(embeddedSetup(at, [newer, older]).server[0]).to.equal(join(older, 'mariadbd'))
    expect(() => embeddedSetup(at, [newer])).to.throw(/was made by MariaDB, which is not on this machine/)
  })

  it('names the command that installs a server program if there is none', () => {
    expect(() => embeddedSetup(join(directory, 'nothing'), ['/nowhere'])).to.throw(
      /apt-get install mariadb-server-core/,
    )
  })
})

interface User {
  /** The line that it prints once it uses the database. */
  using(): Promise<string>
  ask(command: string): Promise<string>
  /** With SIGKILL, so that it cannot clean up. */
  kill(): Promise<void>
}

function spawnUser(home: string): User {
  const child: ChildProcess = spawn(process.execPath, [USER, home], { stdio: ['pipe', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const line = async (): Promise<string> => {
    const { value } = (await lines.next()) as { value: string | undefined }
    return value ?? 'the process ended'
  }
  const first = line()
  return {
    using: () => first,
    ask: (command) => {
      child.stdin!.write(`${command}\n`)
      return line()
    },
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
  }
}

function serversOf(home: string): number[] {
  return processesWith((argument) => argument === `--datadir=${join(home, 'database', 'data')}`)
}

function supervisorsOf(home: string): number[] {
  return processesWith((argument) =>
    argument.includes(`"dataDirectory":${JSON.stringify(join(home, 'database', 'data'))}`),
  )
}

async function nothingRuns(directory: string): Promise<void> {
  const paths = [`--datadir=${directory}/`, `"dataDirectory":"${directory}/`]
  await until(() => processesWith((argument) => paths.some((path) => argument.includes(path))).length === 0)
}

/** The inodes of the TCP sockets on which the process listens. */
function listeningSockets(pid: number): string[] {
  const own = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return ['tcp', 'tcp6']
    .flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').trim().split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns[3] === LISTENING && own.includes(`socket:[${columns[9]}]`))
    .map((columns) => columns[9]!)
}
