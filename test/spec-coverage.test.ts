import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import ts from 'typescript'
import { API_ROUTES } from '#daemon/app.ts'
import { ERROR_STATUS } from '#shared/errors.ts'
import { EVENTS } from '#webhooks/events.ts'
import { openDocPage } from './support/doc-page.ts'

/** Documented names. Each must be in the title of a test that asserts something: a rule without one is not proved. */
const NAMED = {
  endpoint: [
    'GET /api/v1/plans',
    'GET /api/v1/plans/{id}',
    'POST /api/v1/plans',
    'PATCH /api/v1/plans/{id}',
    'POST /api/v1/plans/{id}/prices',
    'PATCH /api/v1/plans/{id}/prices/{price_id}',
    'POST /api/v1/promotions',
    'GET /api/v1/promotions',
    'GET /api/v1/promotions/{id}',
    'PATCH /api/v1/promotions/{id}',
    'GET /api/v1/customers',
    'GET /api/v1/customers/{id}',
    'POST /api/v1/customers',
    'PATCH /api/v1/customers/{id}',
    'POST /api/v1/checkout-sessions',
    'GET /api/v1/subscriptions',
    'GET /api/v1/subscriptions/{external_ref}',
    'PUT /api/v1/subscriptions/{external_ref}/plan',
    'PUT /api/v1/subscriptions/{external_ref}/customer',
    'GET /api/v1/transactions',
    'GET /api/v1/transactions/{id}',
    'GET /api/v1/events',
    'GET /api/v1/events/{id}',
    'GET /api/v1/test-clock',
    'POST /api/v1/test-clock',
    'GET /checkout/{token}',
    'POST /checkout/{token}/resolve',
    'GET /checkout/{token}/bank',
    'GET /checkout/{token}/qr.svg',
    'GET /checkout/{token}/status',
    'GET /renew/{token}',
    'POST /renew/{token}',
    'GET /renew/{token}/opt-out',
    'POST /renew/{token}/opt-out',
    'POST /api/v1/webhooks/card-provider',
    'POST /api/v1/webhooks/bank-transfer-provider',
    'POST /api/v1/webhooks/bank-transfer',
    'GET /healthz',
    'GET /readyz',
    'GET /metrics',
  ],
  'error code': Object.keys(ERROR_STATUS),
  'event type': [
    'subscription.updated',
    'subscription.renewed',
    'subscription.renewal_reminder_sent',
    'transaction.completed',
    'transaction.refunded',
    'transaction.flagged',
    'subscription.expired',
  ],
  'relay outcome': [
    'processed',
    'already_completed',
    'duplicate',
    'underpaid',
    'ignored',
    'not_bank_email',
    'no_transfer_code',
    'unknown_transaction',
    'transaction_not_pending',
    'not_bank_transfer_transaction',
    'bank_account_unavailable',
    'rejected',
    'untrusted_sender',
    'invalid_recipient',
  ],
  'flag reason': ['underpaid', 'already_lifetime', 'trial_already_used', 'duplicate_payment', 'superseded'],
}
describe('what sellers and operators know by name', () => {
  const titles = globSync('**/*.test.ts', { cwd: import.meta.dirname }).flatMap((file) =>
    provingTitles(readFileSync(join(import.meta.dirname, file), 'utf8')),
  )

  it('every call of the API is named here', () => {
    const calls = API_ROUTES.map(
      ({ method, path }) =>
        `${method} ${path.replace(/:(\w+)/g, (_, name: string) => `{${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}}`)}`,
    )
    expect(calls.length).to.be.above(15)
    expect(calls.filter((call) => !NAMED.endpoint.includes(call))).to.deep.equal([])
  })

  it('every event is named here and in docs/webhooks.md', () => {
    const rows = openDocPage('docs/webhooks.md').text.matchAll(/^\| `(\w+\.\w+)` \|/gm)
    expect([...rows].map(([, type]) => type)).to.have.members(NAMED['event type'])
    // The event with which operators test a receiver has no data.
    const types = Object.keys(EVENTS).filter((type) => type !== 'webhook.test')
    expect(types).to.have.members(NAMED['event type'])
  })

  it('a test without an assertion proves nothing', () => {
    const ofTest = (test: string) =>
      provingTitles(`const check = () => expect(1).to.equal(2)\ndescribe('a', () => {${test}})`)
    const empty = ["it('b', () => {})", "it('b')", "it.skip('b', () => check())", "it('b', () => { call('expect') })"]
    expect(empty.flatMap(ofTest)).to.deep.equal([])
    const proving = ["it('b', () => check())", "it('b', async () => { await expectError(1) })"]
    expect(proving.map(ofTest)).to.deep.equal([
      ['b', 'a'],
      ['b', 'a'],
    ])
  })

  for (const [kind, names] of Object.entries(NAMED)) {
    it(`each ${kind} is in the title of a test that asserts something`, () => {
      expect(names).not.to.deep.equal([])
      expect(names.filter((name) => !titles.some((title) => mentions(title, name)))).to.deep.equal([])
    })
  }
})

/** The titles of tests with an assertion, and of groups with such a test. Tests that are skipped prove nothing. */
function provingTitles(text: string): string[] {
  const file = ts.createSourceFile('a.test.ts', text, ts.ScriptTarget.Latest, true)
  const asserting = assertingFunctions(file)
  const titles: string[] = []
  const visit = (node: ts.Node): boolean => {
    const [title, ...rest] = ts.isCallExpression(node) ? node.arguments : []
    const called = ts.isCallExpression(node) && ts.isIdentifier(node.expression) ? node.expression.text : null
    const isTest = called === 'it' && rest.some((argument) => asserts(argument, asserting))
    let isProving = isTest
    ts.forEachChild(node, (child) => {
      if (visit(child)) isProving = true
    })
    if (title && isProving && (called === 'it' || called === 'describe')) titles.push(title.getText().slice(1, -1))
    return isProving
  }
  visit(file)
  return titles
}

/** The names of the file's functions that assert, themselves or by a function of the file. */
function assertingFunctions(file: ts.SourceFile): ReadonlySet<string> {
  const functions = new Map<string, ts.Node>()
  const collect = (node: ts.Node): void => {
    if (ts.isFunctionDeclaration(node) && node.name) functions.set(node.name.text, node)
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      if (ts.isArrowFunction(node.initializer)) functions.set(node.name.text, node.initializer)
    ts.forEachChild(node, collect)
  }
  collect(file)
  const asserting = new Set<string>()
  for (let size = -1; size !== asserting.size;) {
    size = asserting.size
    for (const [name, body] of functions) if (asserts(body, asserting)) asserting.add(name)
  }
  return asserting
}

/** Whether the code calls `expect`, `expectError` and the like, or one of the asserting functions. */
function asserts(code: ts.Node, asserting: ReadonlySet<string>): boolean {
  if (ts.isCallExpression(code)) {
    const called = ts.isPropertyAccessExpression(code.expression) ? code.expression.expression : code.expression
    const name = ts.isIdentifier(called) ? called.text : ''
    if (/^expect/.test(name) || asserting.has(name)) return true
  }
  return ts.forEachChild(code, (child) => asserts(child, asserting) || undefined) ?? false
}

/** The name itself, not the beginning of a longer one. */
function mentions(title: string, name: string): boolean {
  const start = title.indexOf(name)
  if (start === -1) return false
  const [before, after] = [title.slice(0, start), title.slice(start + name.length)]
  return (!/[\w.]$/.test(before) && !/^(\w|[./-]\w|\/\{)/.test(after)) || mentions(after, name)
}
