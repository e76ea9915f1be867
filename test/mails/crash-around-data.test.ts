import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Scene } from '../renewals/scene.ts'
import { dueMails, KINDS } from './kinds.ts'
import { startSweep } from './start-sweep.ts'

for (const kind of KINDS)
  describe(`a daemon that is killed around SMTP DATA (T06): ${kind.noun}s`, () => {
    let scene: Scene
    let child: ChildProcess | null = null

    beforeEach(async () => {
      scene = await dueMails(kind, 1)
    })
    afterEach(async () => {
      child?.kill('SIGKILL')
      await scene.stop()
    })

    /** Runs a sweep in a process of its own, to its end or to its death. */
    const sweepElsewhere = async () => {
      child = startSweep(scene, kind.noun)
      await once(child, 'exit')
      return child.signalCode
    }
    const kill = () => void child?.kill('SIGKILL')
    const killed = async () => {
      kill()
      await once(child!, 'exit')
    }
    const sweepLater = async () => {
      scene.ctx.clock.advance('5m')
      await kind.sweep(scene.ctx)
    }
    const arrived = () => scene.inbox.mails.length
    const unconfirmed = () => kind.unconfirmed.count(scene.ctx)

    it('killed before the server’s go-ahead, nothing was handed over: the mail is sent later, once, and counted once', async () => {
      scene.inbox.beforeGoAhead = killed
      expect(await sweepElsewhere()).to.equal('SIGKILL')
      scene.inbox.beforeGoAhead = null
      expect(scene.inbox.messagesSeen).to.equal(0)
      const counted = [[kind.due.slice(0, 10), 1]]
      expect(await scene.counted()).to.deep.equal(counted)
      await sweepLater()
      await sweepLater()
      expect(await scene.counted()).to.deep.equal(counted)
      expect(await unconfirmed()).to.equal(0)
      expect(arrived()).to.equal(1)
    })

    it('killed while the server has the mail and has not answered, it is never sent again and operators see it', async () => {
      scene.inbox.beforeAnswer = killed
      expect(await sweepElsewhere()).to.equal('SIGKILL')
      scene.inbox.beforeAnswer = null
      expect(arrived(), 'what was killed has sent the mail').to.equal(1)
      await sweepLater()
      expect(arrived()).to.equal(1)
      expect(await unconfirmed()).to.equal(1)
    })

    it('killed when the server answers, each mail is sent once and is recorded or shown to operators', async () => {
      scene.inbox.beforeAnswer = () => Promise.resolve(void setImmediate(kill))
      await sweepElsewhere()
      scene.inbox.beforeAnswer = null
      await sweepLater()
      expect(arrived()).to.equal(1)
      const recorded = await scene.ctx.db.count(kind.table, "WHERE status = 'sent'")
      expect(recorded + (await unconfirmed())).to.equal(1)
    })
  })
