import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { formatBars } from '#cli/bar-chart.ts'

const BARS = [
  { label: '2026-09', value: 800, text: '₫800 from 8' },
  { label: '2026-10', value: 0, text: '-' },
  { label: '2026-11', value: 1, text: '₫1 from 1' },
]

describe('a bar chart', () => {
  it('draws each month on a line, the longest as wide as the terminal, and the smallest amount visibly', () => {
    for (const width of [60, 80, 120, 200]) {
      const [largest = '', none = '', smallest = ''] = formatBars(BARS, width).split('\n')
      expect(largest).to.match(/^2026-09 {2}█+ {2}₫800 from 8$/)
      expect(largest).to.have.length(width)
      expect(none).to.match(/^2026-10 +-$/)
      expect(smallest).to.match(/^2026-11 {2}[▏▎▍] +₫1 from 1$/)
    }
  })

  it('draws bars in proportion, to an eighth of a column', () => {
    const chart = formatBars(
      [8, 4, 3].map((value) => ({ label: 'm', value, text: '' })),
      21,
    )
    expect(chart.split('\n').map((line) => line.slice(3).trimEnd())).to.deep.equal([
      '█'.repeat(16),
      '█'.repeat(8),
      '█'.repeat(6),
    ])
    const [, half = ''] = formatBars(
      [16, 1].map((value) => ({ label: 'm', value, text: '' })),
      13,
    ).split('\n')
    expect(half.slice(3).trimEnd()).to.equal('▌')
  })

  it('fits every width, and leaves out the bars where there is no room for them', () => {
    expect(formatBars(BARS, 24)).to.equal('2026-09  ₫800 from 8\n2026-10            -\n2026-11    ₫1 from 1')
    fc.assert(
      fc.property(
        fc.array(fc.nat(1e12), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 40, max: 200 }),
        (values, width) => {
          const bars = values.map((value, index) => ({
            label: `2026-${String(index + 10)}`,
            value,
            text: String(value),
          }))
          for (const line of formatBars(bars, width).split('\n')) expect(line.length).to.be.at.most(width)
        },
      ),
    )
  })
})
