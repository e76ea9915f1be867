import { expect } from 'chai'
import { describe, it } from 'mocha'
import { accentStyle, contrast, unreadable } from '#apps/accent.ts'

type Rgb = Parameters<typeof contrast>[0]
const rgb = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb
const shades = (style: string) =>
  [...style.matchAll(/(--[\w-]+):(#[0-9a-f]{6})/g)].map(([, name, hex]) => [name!, hex!] as const)

describe('an accent colour', () => {
  it('is measured as WCAG measures contrast', () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).to.equal(21)
    expect(contrast([119, 119, 119], [255, 255, 255])).to.be.closeTo(4.48, 0.01)
  })

  it('that is not readable is refused with the nearest readable one', () => {
    expect(unreadable('#1b5fc1')).to.equal(null)
    const problem = unreadable('#ffd54a') ?? expect.fail('it was accepted')
    expect(problem.contrast).to.be.lessThan(1.5)
    expect(unreadable(problem.nearest)).to.equal(null)
  })

  it('has readable shades in both schemes, whatever it is', () => {
    let tried = 0
    for (let hue = 0; hue < 4096; hue += 7) {
      const hex = `#${[hue >> 8, (hue >> 4) & 15, hue & 15].map((part) => (part * 17).toString(16).padStart(2, '0')).join('')}`
      if (unreadable(hex)) continue
      tried += 1
      const found = shades(accentStyle(hex))
      expect(found).to.have.length(8)
      for (const [half, ground] of [
        [found.slice(0, 4), '#f3f4f7'],
        [found.slice(4), '#1d222b'],
      ] as const) {
        const [accent, strong, soft, on] = half.map(([, value]) => rgb(value)) as [Rgb, Rgb, Rgb, Rgb]
        expect(contrast(accent, rgb(ground)), `${hex} on ${ground}`).to.be.at.least(4.5)
        expect(contrast(on, accent), `${hex}, its text`).to.be.at.least(4.5)
        expect(contrast(on, strong), `${hex}, its text while pointed at`).to.be.at.least(4.5)
        expect(contrast(accent, soft), `${hex}, on its soft shade`).to.be.at.least(3)
      }
    }
    expect(tried).to.be.greaterThan(100)
  })
})
