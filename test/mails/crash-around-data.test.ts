import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { childEnvironment } from '#config.ts'
import { sendDueReminders } from '#mails/send-due-reminders.ts'
import { unconfirmedReminders } from '#mails/mail-lists.ts'
import { reminders } from '#mails/store.ts'
import { testEnvironment } from '../support/context.ts'
import { aScene, type Scene } from '../renewals/scene.ts'

const SWEEP_ONCE = join(import.meta.dirname, 'sweep-once.ts')

describe('a daemon that is killed around SMTP DATA (T06)', () => {
  let scene: Scene
  let child: ChildProcess | null = null

  beforeEach(async () => {
    scene = await aScene()
    await scene.subscribe()
    scene.ctx.clock.set('2026-03-29 10:00:00')
  })
  afterEach(async () => {
    child?.kill('SIGKILL')
    await scene.stop()
  })

  /** Runs a sweep in a process of its own, to its end or to its death. */
  const sweepElsewhere = async () => {
    const { smtpUrl, mailFrom } = scene.ctx.config
    const settings = { BILLING_SMTP_URL: smtpUrl ?? '', BILLING_MAIL_FROM: mailFrom ?? '', BILLING_LOG_LEVEL: 'silent' }
    child = spawn(process.execPath, [SWEEP_ONCE, '2026-03-29 10:00:00'], {
      env: childEnvironment(testEnvironment(settings)),
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    await once(child, 'exit')
    return child.signalCode
  }
  const kill = () => void child?.kill('SIGKILL')
  const sweepLater = async () => {
    scene.ctx.clock.advance('5m')
    return sendDueReminders(scene.ctx)
  }

  it('the sweep by itself sends the mail: what the other tests kill is a real one', async () => {
    expect(await sweepElsewhere()).to.equal(null)
    expect(await scene.stages()).to.deep.equal(['3'])
  })

  it('killed before the server’s go-ahead, nothing was handed over: the mail is sent later, once', async () => {
    scene.inbox.beforeGoAhead = async () => {
      kill()
      await once(child!, 'exit')
    }
    expect(await sweepElsewhere()).to.equal('SIGKILL')
    scene.inbox.beforeGoAhead = null
    expect(scene.inbox.messagesSeen).to.equal(0)
    expect(await unconfirmedReminders.count(scene.ctx)).to.equal(0)
    expect(await sweepLater()).to.include({ sent: 1 })
    expect(await sweepLater()).to.include({ sent: 0 })
    expect(await scene.stages()).to.deep.equal(['3'])
  })

  it('killed while the server has the mail and has not answered, it is never sent again and operators see it', async () => {
    scene.inbox.beforeAnswer = async () => {
      kill()
      await once(child!, 'exit')
    }
    expect(await sweepElsewhere()).to.equal('SIGKILL')
    scene.inbox.beforeAnswer = null
    expect(await sweepLater()).to.include({ sent: 0 })
    expect(await scene.stages()).to.deep.equal(['3'])
    expect((await unconfirmedReminders.page(scene.ctx)).rows.map((row) => row.reminder_day)).to.deep.equal([3])
  })

  it('killed when the server answers, each mail is sent once and is recorded or shown to operators', async () => {
    scene.inbox.beforeAnswer = () => Promise.resolve(void setImmediate(kill))
    await sweepElsewhere()
    scene.inbox.beforeAnswer = null
    expect(await sweepLater()).to.include({ sent: 0 })
    expect(await scene.stages()).to.deep.equal(['3'])
    const recorded = await scene.ctx.db.count(reminders, "WHERE status = 'sent'")
    expect(recorded + (await unconfirmedReminders.count(scene.ctx))).to.equal(1)
  })
})
