import { expect } from 'chai'
import { describe, it } from 'mocha'
import { crc32, deflateSync } from 'node:zlib'
import { MAX_LOGO_BYTES, readLogo } from '#apps/logo.ts'
import { processorMs } from '../support/processor-time.ts'

const svg = (inner: string, root = 'viewBox="0 0 10 10"') =>
  Buffer.from(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" ${root}>${inner}</svg>`)
const cleaned = (file: Buffer) => {
  const logo = readLogo(file)
  return 'error' in logo ? expect.fail(logo.error) : logo.content.toString()
}
const errorOf = (file: Buffer) => {
  const logo = readLogo(file)
  return 'error' in logo ? logo.error : expect.fail('it was accepted')
}

function chunk(name: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), content])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

function png(width: number, ...extra: Buffer[]): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(1, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const line = deflateSync(Buffer.alloc(1 + 3 * width))
  const head = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([head, chunk('IHDR', header), ...extra, chunk('IDAT', line), chunk('IEND', Buffer.alloc(0))])
}

describe('a logo', () => {
  it('of paths, gradients and references to itself keeps its drawing', () => {
    const drawing =
      '<defs><linearGradient id="a"><stop offset="0" stop-color="#fff"/></linearGradient></defs><path d="M0 0h9" fill="url(#a)" style="stroke:red"/><use xlink:href="#a"/>'
    expect(cleaned(svg(drawing))).to.equal(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><defs><linearGradient id="a"><stop offset="0" stop-color="#fff"/></linearGradient></defs><path d="M0 0h9" fill="url(#a)" style="stroke:red"/><use href="#a"/></svg>',
    )
  })

  for (const element of [
    'script',
    'foreignObject',
    'image',
    'style',
    'iframe',
    'a',
    'animate',
    'set',
    'feImage',
    'handler',
  ]) {
    it(`that holds <${element}> is refused, with what to do`, () => {
      expect(errorOf(svg(`<g><${element}>x</${element}></g>`))).to.equal(
        `holds <${element}>, which a logo may not: export it as plain paths, or as PNG`,
      )
    })
  }

  for (const attribute of [
    'onload="alert(1)"',
    'href="javascript:alert(1)"',
    'xlink:href="https://elsewhere.example/x"',
    'href="data:image/svg+xml,x"',
    'fill="url(https://elsewhere.example/x)"',
    'style="fill:url( https://elsewhere.example )"',
    'style="background:u\\72l(https://elsewhere.example/x)"',
    'style="@import x"',
    'class="a"',
    'xml:base="https://elsewhere.example/"',
  ]) {
    it(`loses ${attribute}`, () => {
      expect(cleaned(svg(`<path d="M0 0" ${attribute}/>`))).to.equal(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><path d="M0 0"/></svg>',
      )
    })
  }

  it('loses document types, entities, comments, processing instructions and the data of drawing programs', () => {
    const file = Buffer.from(
      '<!DOCTYPE svg [<!ENTITY x "<script>alert(1)</script>">]><?xml-stylesheet href="x"?><svg xmlns:inkscape="x"><!-- x --><metadata><script>1</script></metadata><title>&x; &lt;b&gt;</title></svg>',
    )
    expect(cleaned(file)).to.equal('<svg xmlns="http://www.w3.org/2000/svg"><title>&amp;x; &lt;b&gt;</title></svg>')
  })

  it('keeps its words, however they are written', () => {
    const words = '<text>R&amp;D &lt;ü&gt; <![CDATA[<b>]]></text><title font-family="a&quot;&amp;b">x</title>'
    expect(cleaned(svg(words, ''))).to.equal(
      '<svg xmlns="http://www.w3.org/2000/svg"><text>R&amp;D &lt;&#xfc;&gt; <![CDATA[<b>]]></text><title font-family="a&quot;&amp;b">x</title></svg>',
    )
  })

  it('that is not a drawing, is two drawings, or is nested too deeply is refused', () => {
    for (const text of ['', 'GIF89a', '<html></html>', '<svg></svg><svg></svg>', '<g><svg/></g>'])
      expect(errorOf(Buffer.from(text)), text).to.equal('is neither a PNG picture nor an SVG drawing')
    expect(errorOf(Buffer.from([0x3c, 0xff]))).to.equal('is neither a PNG picture nor an SVG drawing')
    expect(errorOf(svg('<g>'.repeat(200) + '</g>'.repeat(200)))).to.equal('is nested too deeply')
  })

  /** `levels` groups, each of which repeats the one before ten times. */
  const nested = (levels: number, use: (id: string) => string) =>
    svg(
      `<defs><path id="u0" d="M0 0h9"/>${Array.from(
        { length: levels },
        (_, level) => `<g id="u${level + 1}">${use(`u${level}`).repeat(10)}</g>`,
      ).join('')}</defs><use href="#u${levels}"/>`,
    )

  it('that would be drawn billions of times by nested references is refused, and at once', () => {
    const references = [
      (id: string) => `<use href="#${id}"/>`,
      (id: string) => `<use xlink:href="#${id}"/>`,
      (id: string) => `<g mask="url(#${id})"/>`,
      (id: string) => `<g clip-path="url('#${id}')"/>`,
      (id: string) => `<g style="opacity:1;mask:URL(&quot;#${id}&quot;)"/>`,
    ]
    for (const reference of references) {
      for (const levels of [3, 11, 100]) {
        const began = processorMs()
        expect(errorOf(nested(levels, reference)), `${levels} ${reference('id')}`).to.equal(
          'repeats its elements more than 1000 times by reference',
        )
        expect(processorMs() - began, `${levels} ${reference('id')}`).to.be.lessThan(1000)
      }
    }
  })

  it('that nests references too deeply is refused', () => {
    const chain = Array.from({ length: 2000 }, (_, at) => `<g id="u${at}"><use href="#u${at + 1}"/></g>`)
    expect(errorOf(svg(chain.join('')))).to.equal('is nested too deeply')
  })

  it('may repeat its elements a thousand times by reference', () => {
    const uses = (count: number) => svg(`<path id="a" d="M0 0"/>${'<use href="#a"/>'.repeat(count)}`)
    expect(cleaned(uses(1000))).to.contain('<use href="#a"/>')
    expect(errorOf(uses(1001))).to.match(/^repeats its elements/)
  })

  it('may have many elements, which many others paint with one gradient', () => {
    const paths = '<path d="M0 0" fill="url(#a)"/>'.repeat(1500)
    const stops = '<stop offset="0"/>'.repeat(5)
    expect(cleaned(svg(`<linearGradient id="a">${stops}</linearGradient>${paths}`))).to.contain('fill="url(#a)"')
  })

  it('that holds an element which refers to itself is refused', () => {
    for (const inner of [
      '<use id="a" href="#a"/>',
      '<g id="a"><use href="#a"/></g>',
      '<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>',
      '<mask id="a"><path mask="url(#a)"/></mask>',
      '<linearGradient id="a" href="#b"/><linearGradient id="b" href="#a"/>',
    ])
      expect(errorOf(svg(inner)), inner).to.equal('holds an element that refers to itself')
  })

  it('as PNG keeps the chunks that draw, and loses texts and trailing data', () => {
    const plain = png(2)
    const wordy = Buffer.concat([png(2, chunk('tEXt', Buffer.from('Author\0An'))), Buffer.from('<script>')])
    const logo = readLogo(wordy)
    expect('content' in logo && logo.content.equals(plain)).to.equal(true)
    expect(logo).to.include({ type: 'image/png' })
  })

  it('as PNG that is damaged, cut short or too large is refused', () => {
    const damaged = png(2)
    damaged[20] = 7
    for (const file of [damaged, png(2).subarray(0, 40), png(2001), png(2, png(2).subarray(8, 33))])
      expect(errorOf(file)).to.match(/^is not a PNG picture of at most 2000 × 2000 pixels, or is damaged$/)
    expect(errorOf(Buffer.alloc(MAX_LOGO_BYTES + 1))).to.equal('must have at most 100 KB')
  })
})
