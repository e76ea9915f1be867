import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { GENERATED, withPart } from '../docs/generate.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const CHAPTERS = globSync('docs/*.md', { cwd: ROOT })
const PAGES = [...globSync('*.md', { cwd: ROOT }), ...CHAPTERS, 'src/README.md', 'src/DECISIONS.md']

/** What GitHub makes of a heading: `#reverse-proxy`. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const withoutCode = (text: string) => text.replace(/^```.*?^```/gms, '')

describe('the documentation', () => {
  it('has a README of at most 250 lines, which leads to every chapter', () => {
    const readme = read('README.md')
    expect(readme.split('\n').length).to.be.at.most(250)
    expect(CHAPTERS.length).to.be.greaterThan(8)
    expect(CHAPTERS.filter((path) => !readme.includes(`(${path})`))).to.deep.equal([])
  })

  it('has no link that leads nowhere, neither to a file nor to a heading', () => {
    const links = PAGES.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(/\]\((?!https?:|mailto:)([^)]+)\)/g)].map(([, link = '']) => ({
        page,
        link,
      })),
    )
    expect(links.length).to.be.greaterThan(30)
    const broken = links.filter(({ page, link }) => {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? page : join(dirname(page), path)
      if (!existsSync(join(ROOT, target))) return true
      if (anchor === undefined) return false
      const headings = [...withoutCode(read(target)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
      return !headings.some((heading) => anchorOf(heading) === anchor)
    })
    expect(broken.map(({ page, link }) => `${page}: ${link}`)).to.deep.equal([])
  })

  for (const part of GENERATED) {
    it(`has in ${part.file} what npm run docs writes there (${part.name})`, async () => {
      expect(await withPart(part)).to.equal(read(part.file))
    })
  }
})
