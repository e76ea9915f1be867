import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { MailNotRead, MailReader } from '#bank-mail/mail-reader.ts'
import { readMail } from '#bank-mail/read-mail.ts'
import { genuineMail, TRUST } from '../support/bank-mails.ts'
import { watchLoop } from '../support/loop-lag.ts'

const STUBBORN = new URL('./stubborn-worker.ts', import.meta.url)

describe('the thread that reads mails', () => {
  let reader: MailReader
  const readText = (text: string) => reader.read(Buffer.from(text))
  const start = (options: ConstructorParameters<typeof MailReader>[1]) => (reader = new MailReader(TRUST, options))

  afterEach(() => reader.close())

  it('reads what is read without it', async () => {
    start({})
    const mail = Buffer.from(await genuineMail('ACB'))
    expect(await reader.read(mail)).to.deep.equal(await readMail(mail, TRUST))
  })

  it('reads many mails at once, each its own', async () => {
    start({})
    const mails = await Promise.all([genuineMail('ACB'), genuineMail('TIMO'), genuineMail('CAKE'), genuineMail('MB')])
    const readings = await Promise.all(mails.map((mail) => reader.read(Buffer.from(mail))))
    expect(readings.map((reading) => reading.bank)).to.deep.equal(['ACB', 'TIMO', 'CAKE', 'MB'])
  })

  for (const [what, text] of Object.entries({
    'never ends': 'loop',
    'eats memory': 'eat',
    dies: 'throw',
    ends: 'exit',
    'gives up': 'give up',
  })) {
    it(`is there for the next mail when it ${what}; the one that it had is not read, and may be why`, async () => {
      start({ cpuLimitMs: text === 'eat' ? 5000 : 100, workerFile: STUBBORN })
      const [before, failed, after] = await Promise.all([
        readText('before'),
        readText(text).catch((error: unknown) => error),
        readText('after'),
      ])
      expect(failed).to.be.instanceOf(MailNotRead).with.property('mayBeCausedByMail', true)
      expect([before.bank, after.bank]).to.deep.equal(['ACB', 'ACB'])
    })
  }

  it('is not given up on a busy machine, where a mail takes long and uses little CPU time', async () => {
    start({ cpuLimitMs: 50, workerFile: STUBBORN })
    expect((await readText('use no CPU time for a while')).bank).to.equal('ACB')
  })

  it('is given up in the end when it neither computes nor answers', async () => {
    start({ wallLimitMs: 500, workerFile: STUBBORN })
    const failed = await readText('never answer').catch((error: unknown) => error)
    expect(failed).to.be.instanceOf(MailNotRead).with.property('mayBeCausedByMail', true)
    expect((await readText('after')).bank).to.equal('ACB')
  })

  it('is not given up for a standstill of the main thread: an answer that lies there is taken', async () => {
    const wallLimitMs = 1000
    start({ wallLimitMs, workerFile: STUBBORN })
    await readText('before')
    // From here on, timers that are due run before messages that lie there.
    await new Promise((resolve) => setImmediate(resolve))
    // The worker writes into it once it has answered; until then, and past the limit, this thread stands still.
    const shared = new Int32Array(new SharedArrayBuffer(8))
    const reading = reader.read(Buffer.from(shared.buffer))
    Atomics.wait(shared, 1, 0)
    Atomics.wait(shared, 0, 0, wallLimitMs + 100)
    expect((await reading).bank).to.equal('ACB')
  })

  it('is not given up for a standstill of the whole machine: what it had begun has the rest of its time', async () => {
    start({ wallLimitMs: 400, workerFile: STUBBORN })
    await readText('before')
    const command = '\nstand still'
    const shared = new Int32Array(new SharedArrayBuffer(8 + command.length))
    const mail = Buffer.from(shared.buffer)
    mail.write(command, 8)
    const reading = reader.read(mail)
    // This thread stands still past the limit; the worker until this one goes on.
    Atomics.wait(shared, 1, 0, 500)
    Atomics.store(shared, 0, 1)
    Atomics.notify(shared, 0)
    expect((await reading).bank).to.equal('ACB')
  })

  it('does not hold the main thread while it is stuck', async () => {
    start({ cpuLimitMs: 500, workerFile: STUBBORN })
    await readText('before')
    const lag = watchLoop()
    await readText('loop').catch(() => null)
    lag.stop()
    expect(lag.longest()).to.be.below(250)
  })

  it('lets the relay come again when too many mails wait', async () => {
    start({ cpuLimitMs: 100, workerFile: STUBBORN })
    await readText('before')
    const stuck = readText('loop').catch((error: unknown) => error)
    const waiting = Array.from({ length: 100 }, () => readText('waiting'))
    const refused = await readText('one more').catch((error: unknown) => error)
    expect(refused).to.include({ code: 'rate_limited', status: 429 })
    expect(await stuck).to.be.instanceOf(MailNotRead)
    expect((await Promise.all(waiting)).every((reading) => reading.bank === 'ACB')).to.equal(true)
  })

  it('reports its own failure, not the mail’s, when it cannot start', async () => {
    start({ workerFile: new URL('./no-such-worker.ts', import.meta.url) })
    const failed = await readText('x').catch((error: unknown) => error)
    expect(failed).to.be.instanceOf(Error)
  })

  for (const [what, program] of Object.entries({ ends: 'process.exit(0)', hangs: 'setInterval(() => {}, 60_000)' })) {
    it(`blames no mail for a worker that ${what} before it is ready, and starts another for the next mail`, async () => {
      start({ startLimitMs: 300, workerFile: new URL(`data:text/javascript,${program}`) })
      for (const text of ['x', 'y']) {
        const failed = await readText(text).catch((error: unknown) => error)
        expect(failed).to.be.instanceOf(MailNotRead).with.property('mayBeCausedByMail', false)
      }
    })
  }

  it('rejects queued mails when it is closed, without blaming the mails', async () => {
    start({ cpuLimitMs: 500, workerFile: STUBBORN })
    const readings = [readText('loop'), readText('after')].map((reading) => reading.catch((error: unknown) => error))
    await reader.close()
    for (const failed of await Promise.all(readings))
      expect(failed).to.be.instanceOf(MailNotRead).with.property('mayBeCausedByMail', false)
  })
})
