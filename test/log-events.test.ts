import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import ts from 'typescript'
import { openDocPage } from './support/doc-page.ts'

const ROOT = join(import.meta.dirname, '..')
const LISTED = ['info', 'warn', 'error', 'fatal']
const LEVELS = ['trace', 'debug', ...LISTED]

/** A call such as `ctx.log.warn({ … }, 'a look-up failed')`. */
interface LogCall {
  readonly place: string
  readonly level: string
  /** What it says, by the branches of a condition; null if that is no literal. */
  readonly messages: readonly string[] | null
}

const calls = globSync('{src,jobs}/**/*.ts', { cwd: ROOT }).flatMap(logCallsIn)

describe('the log', () => {
  it('is written in many places, each with a literal that operators can search for', () => {
    expect(calls.length).to.be.greaterThan(40)
    expect(calls.filter(({ messages }) => messages === null).map(({ place }) => place)).to.deep.equal([])
  })

  it('has every event in docs/operating.md, and nothing else stands there', () => {
    const logged = calls
      .filter(({ level }) => LISTED.includes(level))
      .flatMap(({ level, messages }) => (messages ?? []).map((message) => `${level} ${message}`))
    const rows = openDocPage('docs/operating.md')
      .section('Log events')
      .matchAll(/^\| (\w+) \| `([^`]+)` \| .+ \|$/gm)
    const listed = [...rows].map(([, level = '', message = '']) => `${level} ${message}`)
    expect(listed.length).to.be.above(20)
    expect(listed.toSorted()).to.deep.equal([...new Set(logged)].toSorted())
  })
})

function logCallsIn(path: string): LogCall[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  // Parsing every file takes long, and most log nothing.
  if (!/log\s*\??\./.test(text)) return []
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: LogCall[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression } = node.expression
      if (LEVELS.includes(name.text) && /(^|\.)#?log$/.test(expression.getText())) {
        const place = `${path}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
        found.push({ place, level: name.text, messages: literalsOf(node.arguments.at(-1)) })
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function literalsOf(node: ts.Expression | undefined): string[] | null {
  if (node === undefined) return null
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (!ts.isConditionalExpression(node)) return null
  const branches = [literalsOf(node.whenTrue), literalsOf(node.whenFalse)]
  return branches.every((branch) => branch !== null) ? branches.flat() : null
}
