import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import ts from 'typescript'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** A list item, a heading or a row of a table that begins with a rule's number, up to the next one or the next heading. */
const RULE = /^(?:- |#+ |\| )R(\d+)\b(.*(?:\n(?!(?:- |#+ |\| )).*)*)/gm
/** `test/file.test.ts`: `title`; `title` */
const PROOF = /`(test\/[^`]+\.test\.ts)`: ((?:`[^`]+`(?:; )?)+)/g
/** A test that is not skipped and not in a comment, by its title: no parser, because hundreds of files are read. */
const TEST = /^ *it\(\s*(['"`])((?:(?!\1|\$\{)[^\\]|\\.)+)\1,/gm
const CITATION = /\bR(\d{1,3})\b/g
/** A document that readers of the repository do not have, by the number of its part; the line may break in between. */
const FOREIGN = /\b(?:contract|specification)s?[\s*/]+\d/i
const TEXTS = 'src,jobs,bin,templates,test,bench,docs,client,migrations'

interface Rule {
  readonly number: number
  readonly proofs: readonly { readonly file: string; readonly titles: readonly string[] }[]
}

describe('docs/rules.md', () => {
  const page = read('docs/rules.md')
  const rules = [...page.matchAll(RULE)].map(([, number, text = '']) => ruleOf(Number(number), text))
  const numbers = rules.map(({ number }) => number)
  const texts = [...globSync(`{${TEXTS}}/**/*`, { cwd: ROOT, withFileTypes: true }), ...rootFiles()]
    .filter((entry) => entry.isFile() && !/\.(gz|png|webp|ico|woff2?)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .filter((path) => !path.includes('node_modules/') && path !== 'CHANGELOG.md')

  it('has at least 40 rules, each with a number of its own, in ascending order', () => {
    expect(rules.length).to.be.at.least(40)
    expect(numbers).to.deep.equal([...new Set(numbers)].sort((one, other) => one - other))
  })

  it('names for each rule tests that exist, by their whole titles', () => {
    expect(rules.filter(({ proofs }) => proofs.length === 0).map(({ number }) => number)).to.deep.equal([])
    const files = new Set(rules.flatMap(({ proofs }) => proofs.map(({ file }) => file)))
    const existing = new Map([...files].map((file) => [file, titlesOf(file)]))
    const missing = rules.flatMap(({ number, proofs }) =>
      proofs.flatMap(({ file, titles }) =>
        titles.filter((title) => !existing.get(file)?.has(title)).map((title) => `R${number}: ${file}: ${title}`),
      ),
    )
    expect(missing).to.deep.equal([])
  })

  it('names files that exist', () => {
    const named = [...page.matchAll(/`((?:src|test)\/[^`]+\.ts)`/g)].map(([, path = '']) => path)
    expect(named.length).to.be.above(100)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).to.deep.equal([])
  })

  it('each citation is of a rule that exists', () => {
    const cited = texts.flatMap((path) => [...read(path).matchAll(CITATION)].map(([, number]) => ({ path, number })))
    expect(cited.filter(({ path }) => path.startsWith('src/') && !path.endsWith('.md')).length).to.be.above(20)
    const unknown = cited.filter(({ number }) => !numbers.includes(Number(number)))
    expect(unknown.map(({ path, number }) => `${path}: R${number}`)).to.deep.equal([])
  })

  it('no file cites a document that readers of the repository do not have', () => {
    expect('see contract\n * 4').to.match(FOREIGN)
    expect(texts.length).to.be.above(500)
    expect(texts.filter((path) => FOREIGN.test(read(path)))).to.deep.equal([])
  })

  it('is linked from where readers look for rules', () => {
    for (const path of ['src/README.md', 'docs/architecture.md', 'CONTRIBUTING.md', 'README.md'])
      expect(read(path), path).to.match(/\]\((\.\.\/)?(docs\/)?rules\.md\)/)
  })

  it('a file of pure rules explains each function that it exports', () => {
    const files = globSync(
      'src/**/{period,lifecycle,node,balance,stages,signature,schedule,mail-answer,resolution}.ts',
      {
        cwd: ROOT,
      },
    )
    expect(files.length).to.be.above(8)
    expect(files.flatMap((file) => unexplainedIn(file).map((name) => `${file}: ${name}`))).to.deep.equal([])
  })
})

function ruleOf(number: number, text: string): Rule {
  const proofs = [...text.matchAll(PROOF)].map(([, file = '', titles = '']) => ({
    file,
    titles: [...titles.matchAll(/`([^`]+)`/g)].map(([, title = '']) => title),
  }))
  return { number, proofs }
}

function rootFiles() {
  return globSync('{*.md,*.js,*.json,.env.example}', { cwd: ROOT, withFileTypes: true }).filter(
    ({ name }) => name !== 'package-lock.json',
  )
}

/**
 * The titles of the tests in a file; empty if there is no such file. What a template literal makes of its parts is known only when the
 * test runs, so such a title proves nothing here.
 */
function titlesOf(path: string): ReadonlySet<string> {
  const text = existsSync(join(ROOT, path)) ? read(path) : ''
  return new Set([...text.matchAll(TEST)].map(([, , title = '']) => title.replace(/\\(.)/g, '$1')))
}

function unexplainedIn(path: string): string[] {
  return ts
    .createSourceFile(path, read(path), ts.ScriptTarget.Latest, true)
    .statements.filter((statement) => ts.isFunctionDeclaration(statement))
    .filter(({ modifiers }) => modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .filter((declaration) => ts.getJSDocCommentsAndTags(declaration).length === 0)
    .map(({ name }) => name?.text ?? 'default')
}
