import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import type { Command } from 'commander'
import { describe, it } from 'mocha'
import { createProgram } from '#cli/program.ts'
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

/** The sentences of a page: of its paragraphs, items and cells. Code within a sentence is one word. */
function sentencesOf(page: string): string[] {
  const text = withoutCode(page)
    .replace(/<!--.*?-->|<[^>]+>/gs, '')
    .replace(/`[^`]*`/g, 'Code')
    .replace(/\]\([^)]*\)/g, ']')
  return text
    .split(/\n\s*\n|\n(?=[-*#|] |\d+\. )|\|/)
    .flatMap((part) => part.replace(/\s+/g, ' ').split(/(?<=[.!?][)"*”]*) (?=["(*[“]*[A-Z0-9])/))
    .map((sentence) => sentence.trim())
}

describe('the documentation', () => {
  it('has a README of at most 250 lines, which leads to every page', () => {
    const readme = read('README.md')
    expect(readme.split('\n').length).to.be.at.most(250)
    expect(CHAPTERS.length).to.be.greaterThan(8)
    expect(CHAPTERS.filter((path) => !readme.includes(`(${path})`))).to.deep.equal([])
  })

  it('has no sentence of more than 30 words where people begin: README, getting started, support', () => {
    const long = ['README.md', 'docs/getting-started.md', 'docs/support.md'].flatMap((page) =>
      sentencesOf(read(page))
        .filter((sentence) => sentence.split(' ').length > 30)
        .map((sentence) => `${page}: ${sentence}`),
    )
    expect(long).to.deep.equal([])
  })

  it('has pictures of at most 400 KB in the README, each light and dark and each with words for who does not see it', () => {
    const pictures = [...read('README.md').matchAll(/<picture>.*?<\/picture>/gs)].map(([picture]) => picture)
    expect(pictures.length).to.be.at.least(5)
    const files = pictures.flatMap((picture) => {
      const [, dark = ''] = /<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">/.exec(picture) ?? []
      const [, alt = '', light = ''] = /<img alt="([^"]{10,})" src="([^"]+)"/.exec(picture) ?? []
      expect([alt === '', dark], picture).to.deep.equal([false, light.replace('.light.', '.dark.')])
      return [dark, light]
    })
    expect(files.toSorted()).to.deep.equal(globSync('docs/pictures/*', { cwd: ROOT }).toSorted())
    const bytes = files.map((file) => statSync(join(ROOT, file)).size)
    expect(bytes.reduce((sum, size) => sum + size, 0)).to.be.at.most(400_000)
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

  it('names commands and options that billing-cli has', async () => {
    const program = await createProgram()
    // Decisions are for developers, and name what is no command of operators', too.
    const lines = PAGES.filter((page) => page !== 'src/DECISIONS.md').flatMap((page) =>
      [...read(page).matchAll(/(?:^|[`/(]|\$ |&& )billing-cli ([a-z][^`|&;#)\n]*)/gm)].map(([, text = '']) => ({
        page,
        text,
      })),
    )
    expect(lines.length).to.be.greaterThan(150)
    const unknown = lines.filter(({ text }) => !isUnderstood(program, text.trim().split(/\s+/)))
    expect(unknown.map(({ page, text }) => `${page}: ${text}`)).to.deep.equal([])
  })

  it('has scripts that bash can read', () => {
    const scripts = PAGES.flatMap((page) => [...read(page).matchAll(/^```(?:bash|sh)\n(.*?)^```/gms)])
    expect(scripts.length).to.be.greaterThan(20)
    // Each as a function, so that one bash reads them all, and a part that one leaves open is not closed by the next.
    const input = scripts.map(([, script = ''], index) => `script_${index}() {\n:\n${script}}\n`).join('')
    execFileSync('bash', ['-n'], { input })
  })

  it('has parts that npm run docs writes', () => {
    expect(GENERATED.map(({ name }) => name)).to.include.members(['api', 'cli', 'measurements'])
  })

  for (const part of GENERATED) {
    it(`has in ${part.file} what npm run docs writes there (${part.name})`, async () => {
      expect(await withPart(part)).to.equal(read(part.file))
    })
  }
})

describe('src/DECISIONS.md', () => {
  const decisions = [...read('src/DECISIONS.md').matchAll(/^(\d+)\. \*\*.+\n(?: +\S.*\n)*/gm)].map(
    ([text, number]) => ({
      number: Number(number),
      lines: text.trimEnd().split('\n'),
      checks: [...(/\*Check:\*([^]*)$/.exec(text)?.[1] ?? '').matchAll(/`((?:src|test)\/[^`]+|[a-z]+\.json)`/g)].map(
        ([, path = '']) => path,
      ),
    }),
  )

  it('has decisions whose numbers ascend, each of at most six lines of 140 characters', () => {
    expect(decisions.length).to.be.greaterThan(50)
    expect(read('src/DECISIONS.md').match(/^\d+\./gm)).to.have.lengthOf(decisions.length)
    const isLong = (lines: readonly string[]) => lines.length > 6 || lines.some((line) => line.length > 140)
    expect(decisions.filter(({ lines }) => isLong(lines)).map(({ number }) => number)).to.deep.equal([])
    const numbers = decisions.map(({ number }) => number)
    expect(numbers).to.deep.equal([...new Set(numbers)].sort((a, b) => a - b))
  })

  it('names for each decision the files that check it, and they exist', () => {
    expect(decisions.filter(({ checks }) => checks.length === 0).map(({ number }) => number)).to.deep.equal([])
    const missing = decisions.flatMap(({ checks }) => checks).filter((path) => !existsSync(join(ROOT, path)))
    expect(missing).to.deep.equal([])
  })

  it('has every decision that code or a page cites', () => {
    const files = [
      ...globSync('{src,jobs,bin,test,bench,migrations,docs,client}/**/*.{ts,md}', { cwd: ROOT }),
      ...PAGES,
    ]
    const cited = files.flatMap((path) =>
      [...read(path).matchAll(/\bdecisions? (\d+)/gi)].map(([, number]) => ({ path, number: Number(number) })),
    )
    expect(cited.length).to.be.greaterThan(3)
    const known = new Set(decisions.map(({ number }) => number))
    expect(cited.filter(({ number }) => !known.has(number))).to.deep.equal([])
  })
})

describe('the repository', () => {
  const { version, engines, dependencies, scripts } = JSON.parse(read('package.json')) as {
    version: string
    engines: { node: string }
    dependencies: Record<string, string>
    scripts: Record<string, string>
  }

  it('asks for one oldest Node.js to start with, which a fresh Debian 12 has', () => {
    const oldest = '18'
    expect(engines.node).to.equal(`>=${oldest}`)
    for (const page of ['README.md', 'CONTRIBUTING.md'])
      expect(read(page), page).to.include(`Node.js ${oldest} or newer with npm`)
    expect(read('docs/operating.md')).to.include(`\`nodejs\` and \`npm\` (${oldest} on Debian 12)`)
  })

  it('names the Node.js that it pins to version managers, too', () => {
    expect(read('.nvmrc').trim()).to.equal(dependencies['node'])
  })

  it('runs npm run check and .ci/run in continuous integration', () => {
    const runs = [...read('.github/workflows/ci.yml').matchAll(/^ +run: (.+)$/gm)].map(([, command]) => command)
    expect(runs).to.include.members(['npm run check', '.ci/run'])
  })

  it('mentions only existing scripts to contributors', () => {
    const pages = [...PAGES, '.github/pull_request_template.md'].map(read).join('\n')
    const named = new Set([...pages.matchAll(/npm run ([a-z]+)/g)].map(([, script = '']) => script))
    expect(named).to.include('check')
    expect([...named].filter((script) => !(script in scripts))).to.deep.equal([])
  })

  it('has a changelog with its version, below what is not released, in the sections of Keep a Changelog', () => {
    const headings = [...read('CHANGELOG.md').matchAll(/^##+ (.+)$/gm)].map(([, heading = '']) => heading)
    expect(headings[0]).to.equal('[Unreleased]')
    const kinds = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']
    const versions = headings.slice(1).filter((heading) => !kinds.includes(heading))
    expect(versions[0]?.startsWith(`[${version}] - `)).to.equal(true)
    expect(versions.filter((heading) => !/^\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$/.test(heading))).to.deep.equal([])
  })
})

/** Whether a line names a command, its arguments aside, and only options that this command has. */
function isUnderstood(program: Command, words: readonly string[]): boolean {
  let command = program
  for (const word of words) {
    const child = command.commands.find((candidate) => candidate.name() === word)
    if (!child) break
    command = child
  }
  const known = [...command.options, ...program.options].flatMap(({ long, short }) => [long, short])
  const given = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/[=,.].*$/, ''))
  return command.commands.length === 0 && given.every((option) => known.includes(option))
}
