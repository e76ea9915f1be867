import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readerOf } from '#apps/page-settings.ts'
import { LOCALES, type Locale } from '#shared/locale.ts'
import { dayWords, isoDay, momentWords } from '#words/dates.ts'
import { intervalWords, paidForWords, planTitle } from '#words/plans.ts'
import { parseAppTime } from '#shared/time.ts'

const instant = parseAppTime('2026-03-31 23:05:00') ?? expect.fail('no time')

describe('times and intervals in words', () => {
  const reader = (locale: Locale, timeZone: string) => ({ locale, timeZone })

  it('days and times are in the reader’s language and zone, times of day with the zone', () => {
    expect(dayWords(instant, reader('en', 'UTC'))).to.equal('31 March 2026')
    expect(dayWords(instant, reader('vi', 'UTC'))).to.equal('31/3/2026')
    expect(dayWords(instant, reader('vi', 'Asia/Ho_Chi_Minh'))).to.equal('1/4/2026')
    expect(momentWords(instant, reader('en', 'UTC'))).to.equal('31 March 2026, 23:05 UTC')
    expect(momentWords(instant, reader('en', 'Europe/Berlin'))).to.equal('1 April 2026, 01:05 CEST')
    expect(momentWords(instant, reader('en', 'Asia/Ho_Chi_Minh'))).to.equal('1 April 2026, 06:05 GMT+7')
    expect(momentWords(instant, reader('vi', 'Asia/Ho_Chi_Minh'))).to.equal('06:05 ngày 1/4/2026 (GMT+7)')
    expect(isoDay(instant, 'Asia/Ho_Chi_Minh')).to.equal('2026-04-01')
  })

  it('midnight is 00:00, and summer time counts', () => {
    const midnight = parseAppTime('2026-06-30 22:00:00') ?? expect.fail('no time')
    expect(momentWords(midnight, reader('en', 'Europe/Berlin'))).to.equal('1 July 2026, 00:00 CEST')
    expect(momentWords(midnight, reader('en', 'America/New_York'))).to.equal('30 June 2026, 18:00 GMT-4')
  })

  it('an app’s zone is its own, or that of the language', () => {
    expect(readerOf({ pageSettings: null }, 'vi').timeZone).to.equal('Asia/Ho_Chi_Minh')
    expect(readerOf({ pageSettings: null }, 'en').timeZone).to.equal('UTC')
    const own = { pageSettings: { time_zone: 'Asia/Tokyo' } }
    for (const locale of LOCALES) expect(readerOf(own, locale).timeZone).to.equal('Asia/Tokyo')
  })

  it('a plan is called gói in Vietnamese, once', () => {
    expect(planTitle('Premium', 'en')).to.equal('Premium')
    expect(planTitle('Premium', 'vi')).to.equal('Gói Premium')
    expect(planTitle('Gói Cao cấp'.normalize('NFD'), 'vi')).to.equal('Gói Cao cấp'.normalize('NFD'))
    expect(paidForWords('Premium', true, 'vi')).to.equal('gói Premium')
    expect(paidForWords('Gói Cao cấp', true, 'vi')).to.equal('Gói Cao cấp')
    expect(paidForWords('Sách nói', false, 'vi')).to.equal('Sách nói')
  })

  it('intervals are counted in words', () => {
    expect(intervalWords({ unit: 'month', count: 1 }, 'en')).to.equal('1 month')
    expect(intervalWords({ unit: 'month', count: 3 }, 'en')).to.equal('3 months')
    expect(intervalWords({ unit: 'week', count: 2 }, 'vi')).to.equal('2 tuần')
    expect(intervalWords({ unit: 'lifetime', count: 1 }, 'en')).to.equal('lifetime')
    expect(intervalWords({ unit: 'lifetime', count: 1 }, 'vi')).to.equal('trọn đời')
  })
})
