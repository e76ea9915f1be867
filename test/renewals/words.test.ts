import { expect } from 'chai'
import { describe, it } from 'mocha'
import { dayWords, intervalWords, momentWords, planTitle } from '#renewals/words.ts'
import { parseAppTime } from '#shared/time.ts'

const instant = parseAppTime('2026-03-31 23:05:00') ?? expect.fail('no time')

describe('times and intervals in words', () => {
  it('days and times are UTC, in the reader’s language, and say so', () => {
    expect(dayWords(instant, 'en')).to.equal('31 March 2026')
    expect(dayWords(instant, 'vi')).to.equal('31 tháng 3, 2026')
    expect(momentWords(instant, 'en')).to.equal('31 March 2026, 23:05 UTC')
    expect(momentWords(instant, 'vi')).to.equal('31 tháng 3, 2026, 23:05 UTC')
  })

  it('a plan is called gói in Vietnamese, once', () => {
    expect(planTitle('Premium', 'en')).to.equal('Premium')
    expect(planTitle('Premium', 'vi')).to.equal('Gói Premium')
    expect(planTitle('Gói Cao cấp'.normalize('NFD'), 'vi')).to.equal('Gói Cao cấp'.normalize('NFD'))
  })

  it('intervals are counted in words', () => {
    expect(intervalWords({ unit: 'month', count: 1 }, 'en')).to.equal('1 month')
    expect(intervalWords({ unit: 'month', count: 3 }, 'en')).to.equal('3 months')
    expect(intervalWords({ unit: 'week', count: 2 }, 'vi')).to.equal('2 tuần')
    expect(intervalWords({ unit: 'lifetime', count: 1 }, 'en')).to.equal('lifetime')
    expect(intervalWords({ unit: 'lifetime', count: 1 }, 'vi')).to.equal('trọn đời')
  })
})
