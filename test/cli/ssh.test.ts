import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { auditLog } from '#commands/store.ts'
import type { Context } from '#context.ts'
import { ROLES } from '#operators/role.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext } from '../support/context.ts'
import { anApp, aPlan, paid, partlyPaid, priceId, type TestApp } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { flaggedOf } from '../support/review.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startSshServer, type SshRan, type SshServer } from '../support/ssh-server.ts'
import { openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { ENTER, onTerminal, type Screen, type Step } from './terminal.ts'

const ESCAPE = '\u001b'

describe('operators, by a real sshd', () => {
  let cli: Cli
  let ctx: Context
  let app: TestApp
  let server: SshServer

  beforeEach(async () => {
    cli = openCli()
    ctx = realTimeContext()
    app = await anApp(ctx)
    server = await startSshServer(cli.env)
    for (const role of ROLES) {
      const key = `${server.makeKey(role)}.pub`
      const added = await cli.json(['operator', 'add', role, '--role', role, '--ssh-key', key])
      server.authorize(added.authorized_keys)
    }
  })

  afterEach(async () => {
    await server.stop()
  })

  const expectForbidden = ({ code, stdout, stderr }: SshRan, what: string): void => {
    expect([code, stdout], `${what}: ${stderr}`).to.deep.equal([1, ''])
    expect(stderr, what).to.include('forbidden')
  }

  /** Also a line that begins with a dash. */
  const asked = (name: string, line: string): Promise<SshRan> => server.ssh(name, ['--', line])

  const onConsole = (name: string, steps: readonly Step[]): Promise<Screen> =>
    onTerminal({ PATH: cli.env['PATH'] ?? '' }, [...server.argumentsFor(name), '-tt'], steps, {
      program: ['/usr/bin/ssh'],
    })

  it('each key does what its role may, and nothing beyond it, by the name of its operator', async () => {
    await paid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const { id: completed } = (await ctx.db.one(transactions, ''))!
    await partlyPaid(ctx, app, { external_ref: 'user-2', price_id: priceId(await aPlan(ctx, app, { code: 'b' })) })
    const flagged = await flaggedOf(ctx, app)
    const dismiss = `transaction resolve ${flagged} --action dismiss --note "it's short" --yes --json`
    const refund = `transaction resolve ${completed} --action refund --reference FT9 --note n --yes --json`
    const end = `subscription end ${app.app.id} user-1 --note n --json`
    const add = 'operator add eve --role view --json'
    const may: Record<(typeof ROLES)[number], readonly string[]> = {
      view: ['transaction list --json', `transaction show ${flagged} --json`],
      support: [dismiss],
      money: [refund, end],
      owner: [add],
    }
    for (const [index, role] of ROLES.entries()) {
      const higher = ROLES[index + 1]
      if (higher) for (const line of may[higher]) expectForbidden(await asked(role, line), `${role}: ${line}`)
      for (const line of may[role]) {
        const { code, stdout, stderr } = await asked(role, line)
        expect(code, `${role}: ${line}: ${stderr}`).to.equal(0)
        expect(() => JSON.parse(stdout) as unknown, line).not.to.throw()
      }
    }
    const audit = await ctx.db.all(auditLog, 'WHERE actor IN (?) ORDER BY id', [ROLES])
    expect(audit.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      'support transaction.resolve.dismiss',
      'money transaction.resolve.refund',
      'money subscription.end',
      'owner operator.add',
    ])
    expect(audit[0]!.reason).to.equal("it's short")
    await cli.json(['operator', 'remove', 'view'])
    expectForbidden(await asked('view', 'app list'), 'a key of nobody')
    await cli.json(['operator', 'set-role', 'support', 'view'])
    expectForbidden(await asked('support', 'webhook retry --failed 1'), 'after operator set-role')
  })

  it('no line runs another program, another operator’s work, a hidden command, or a file of the server', async () => {
    const proof = join(scratchFolder('ssh-proof'), 'made')
    const lines = [
      `app list; touch ${proof}`,
      `app list | tee ${proof}`,
      `app list > ${proof}`,
      `app show $(touch ${proof})`,
      `app list\r\ntouch ${proof}`,
      'as owner',
      '--json as owner',
      `as owner app export 1 --out ${proof}`,
      'complete app',
      `plan create ${app.app.id} --file /etc/passwd`,
      `backup create --pipe "tee ${proof}"`,
    ]
    await mapConcurrently(lines, async (line) => expectForbidden(await asked('support', line), line))
    for (const text of ['@/etc/passwd', `'\`touch ${proof}\`'`]) {
      const found = await asked('owner', `find ${text} --json`)
      expect([found.code, found.stdout.includes('root:')], text).to.deep.equal([0, false])
    }
    await mapConcurrently(['sh', '/bin/sh -c id', '-c id', '-o ProxyCommand=id app list'], async (line) => {
      const { code, stdout } = await asked('owner', line)
      expect([code, stdout], line).to.deep.equal([2, ''])
    })
    expect(existsSync(proof)).to.equal(false)
  })

  it('no environment of the client reaches the command, and no file, port, agent or display the machine', async () => {
    const folder = scratchFolder('ssh-proof')
    const hostile = {
      NODE_OPTIONS: '--version',
      SSH_ORIGINAL_COMMAND: 'operator list',
      LC_ALL: '$(id)',
      LD_PRELOAD: '',
    }
    const sent = { ...hostile, BILLING_DATABASE_URL: 'mysql://127.0.0.1:1/x', BILLING_LOG_LEVEL: 'nonsense' }
    const { code, stdout } = await server.ssh('view', [...sending(sent), 'app list --json'], sent)
    expect([code, (JSON.parse(stdout) as Shown<'app', 'list'>)[0]!.app_id]).to.deep.equal([0, app.app.id])
    const via = server.argumentsFor('owner')
    const port = ['-P', String(server.port)]
    const options = via.slice(0, via.indexOf('-p'))
    const target = `billing@127.0.0.1:${join(folder, 'copied')}`
    const attempts: [program: string, words: string[]][] = [
      ['ssh', [...via, '-W', `127.0.0.1:${server.port}`]],
      ['ssh', [...via, '-N', '-o', 'ExitOnForwardFailure=yes', '-R', '0:127.0.0.1:22']],
      ['ssh', [...via, '-s', 'sftp']],
      ['scp', ['-O', ...options, ...port, '/etc/hostname', target]],
      ['scp', ['-O', ...options, ...port, 'billing@127.0.0.1:/etc/passwd', join(folder, 'fetched')]],
      ['scp', [...options, ...port, 'billing@127.0.0.1:/etc/passwd', join(folder, 'fetched')]],
    ]
    for (const [program, words] of attempts) {
      const ended = await server.client(program, words)
      expect(ended.code, `${program} ${words.join(' ')}: ${ended.stdout}`).not.to.equal(0)
      expect(ended.stdout).not.to.include('root:')
    }
    expect(['copied', 'fetched'].filter((name) => existsSync(join(folder, name)))).to.deep.equal([])
  })

  it('a terminal gets the console of the role, in which : may do what the role may', async () => {
    const reading = await onConsole('view', [
      ['read only, view (view)', ':'],
      [':', `app create --name X --auth hmac${ENTER}`],
      ['forbidden', ESCAPE],
      ['esc', ':'],
      [':', `as owner${ENTER}`],
      ['as is for sshd alone', ESCAPE],
      ['esc', ':'],
      [':', `app list; id${ENTER}`],
      ['into single quotes', 'q'],
    ])
    expect([reading.code, reading.left], reading.text).to.deep.equal([0, []])
    const writing = await onConsole('money', [
      ['WRITE, money (money)', ':'],
      [':', `key rotate${ENTER}`],
      ['needs the role owner', ESCAPE],
      ['esc', 'q'],
    ])
    expect([writing.code, writing.left], writing.text).to.deep.equal([0, []])
    expect(await ctx.db.all(auditLog, 'WHERE actor IN (?)', [['view', 'money']])).to.deep.equal([])
  })
})

/** What makes ssh send these variables. */
function sending(variables: object): string[] {
  return ['-o', `SendEnv=${Object.keys(variables).join(' ')}`]
}
