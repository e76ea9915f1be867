import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { MailReader } from '#providers/bank-mail/mail-reader.ts'
import { readMail } from '#providers/bank-mail/read-mail.ts'
import { genuineMail, TRUST } from '../../support/bank-mails.ts'
import { watchLoop } from '../../support/loop-lag.ts'

const STUBBORN = new URL('./stubborn-worker.ts', import.meta.url)

describe('the thread that reads mails', () => {
  let reader: MailReader
  const readText = (text: string) => reader.read(Buffer.from(text), TRUST)
  const start = (options: ConstructorParameters<typeof MailReader>[0]) => (reader = new MailReader(options))

  afterEach(() => reader.close())

  it('reads what is read without it', async () => {
    start({})
    const mail = Buffer.from(await genuineMail('ACB'))
    expect(await reader.read(mail, TRUST)).to.deep.equal(await readMail(mail, TRUST))
  })

  it('reads many mails at once, each its own', async () => {
    start({})
    const mails = await Promise.all([genuineMail('ACB'), genuineMail('TIMO'), genuineMail('CAKE'), genuineMail('MB')])
    const readings = await Promise.all(mails.map((mail) => reader.read(Buffer.from(mail), TRUST)))
    expect(readings.map((reading) => reading?.bank)).to.deep.equal(['ACB', 'TIMO', 'CAKE', 'MB'])
  })

  for (const [what, text] of Object.entries({
    'never ends': 'loop',
    'eats memory': 'eat',
    dies: 'throw',
    ends: 'exit',
  })) {
    it(`is replaced when it ${what}; the mail says nothing, and the next is read`, async () => {
      start({ timeLimitMs: 500, workerFile: STUBBORN })
      const readings = await Promise.all([readText('before'), readText(text), readText('after')])
      expect(readings.map((reading) => reading?.bank ?? null)).to.deep.equal(['ACB', null, 'ACB'])
    })
  }

  it('does not hold the main thread while it is stuck', async () => {
    start({ timeLimitMs: 500, workerFile: STUBBORN })
    await readText('before')
    const lag = watchLoop()
    await readText('loop')
    lag.stop()
    expect(lag.longest()).to.be.below(250)
  })

  it('lets the relay come again when too many mails wait', async () => {
    start({ timeLimitMs: 500, workerFile: STUBBORN })
    await readText('before')
    const stuck = readText('loop')
    const waiting = Array.from({ length: 100 }, () => readText('waiting'))
    const refused = await readText('one more').catch((error: unknown) => error)
    expect(refused).to.include({ code: 'rate_limited', status: 429 })
    expect(await stuck).to.equal(null)
    expect((await Promise.all(waiting)).every((reading) => reading?.bank === 'ACB')).to.equal(true)
  })

  it('is our fault, not the mail’s, when it cannot start', async () => {
    start({ workerFile: new URL('./no-such-worker.ts', import.meta.url) })
    const failed = await readText('x').catch((error: unknown) => error)
    expect(failed).to.be.instanceOf(Error)
  })

  it('gives up what waits when it is closed', async () => {
    start({ timeLimitMs: 500, workerFile: STUBBORN })
    const readings = [readText('loop'), readText('after')]
    await reader.close()
    expect(await Promise.all(readings)).to.deep.equal([null, null])
  })
})
