import { expect } from 'chai'
import { describe, it } from 'mocha'
import { appNow, toRealTime } from '#apps/app-time.ts'
import { HOUR_MS, addMs, asAppTime, asRealTime, wholeSeconds, type AppTime, type RealTime } from '#shared/time.ts'

describe('the two kinds of time', () => {
  const real = asRealTime(new Date('2026-03-01T10:00:00.250Z'))
  const app = asAppTime(new Date('2026-03-01T10:00:00.250Z'))

  // Each line below it fails `npm run check` as soon as it compiles.
  it('are not comparable, nor one where the other is asked for', () => {
    const takesReal = (instant: RealTime): RealTime => instant
    // @ts-expect-error TS2365: the two have no overlap
    expect(app < real).to.equal(false)
    // @ts-expect-error TS2367: the two have no overlap
    expect(app === real).to.equal(false)
    // @ts-expect-error TS2345: an app's own time is no real time
    expect(takesReal(app)).to.equal(app)
    // @ts-expect-error TS2345: nobody said of which kind this one is
    expect(takesReal(new Date(0))).to.deep.equal(new Date(0))
  })

  it('keep their kind through arithmetic, and turn into each other by the clock of an app alone', () => {
    const later: AppTime = wholeSeconds(addMs(app, HOUR_MS))
    expect(later).to.deep.equal(new Date('2026-03-01T11:00:00Z'))
    const clock = { clockOffsetMs: 36 * HOUR_MS }
    const there: AppTime = appNow(clock, real)
    expect(there).to.deep.equal(addMs(app, 36 * HOUR_MS))
    expect(toRealTime(clock, there)).to.deep.equal(real)
  })
})
