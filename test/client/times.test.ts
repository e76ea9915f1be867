import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { formatTime, hasAccess, parseTime } from '../../client/src/index.ts'

const TIMES = join(import.meta.dirname, '../../client/src/times.ts')
const run = promisify(execFile)

describe('the times of the client', () => {
  it('are in UTC, as the API and webhooks write them', () => {
    const same = ['2026-12-22T19:03:53+00:00', '2026-12-22T19:03:53.000Z', '2026-12-23T02:03:53+07:00']
    for (const text of ['2026-12-22 19:03:53', ...same])
      expect(parseTime(text).getTime()).to.equal(Date.UTC(2026, 11, 22, 19, 3, 53))
    expect(formatTime(parseTime('2026-12-22 19:03:53'))).to.equal('2026-12-22 19:03:53')
  })

  it('are the same on a server in Ho Chi Minh City, where new Date is seven hours early', async () => {
    const program = `import { parseTime } from '${TIMES}'
const text = '2026-12-22 19:03:53'
console.log((parseTime(text) - new Date(text)) / 3_600_000)`
    const env = { ...process.env, TZ: 'Asia/Ho_Chi_Minh' }
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], { env })
    expect(stdout).to.equal('7\n')
  })

  it('refuse any other text', () => {
    for (const text of ['', '2026-12-22', '2026-12-22 19:03', '1 2026-12-22 19:03:53', '2026-13-22 19:03:53', 'soon'])
      expect(() => parseTime(text), text).to.throw(TypeError, text)
  })

  it('give access until the very second at which a period ends, for ever for a lifetime, and not to the expired', () => {
    const active = { status: 'active', current_period_end: '2026-12-22 19:03:53' } as const
    expect(hasAccess(active, new Date('2026-12-22T19:03:52.999Z'))).to.equal(true)
    expect(hasAccess(active, new Date('2026-12-22T19:03:53Z'))).to.equal(false)
    expect(hasAccess({ status: 'active', current_period_end: null }, new Date('2999-01-01'))).to.equal(true)
    expect(hasAccess({ ...active, status: 'expired' }, new Date('2026-12-01'))).to.equal(false)
    expect(hasAccess({ status: 'expired', current_period_end: null })).to.equal(false)
    for (const nobody of [null, undefined]) expect(hasAccess(nobody)).to.equal(false)
  })
})
