import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { ERROR_STATUS } from '#shared/errors.ts'
import { EVENTS } from '#webhooks/events.ts'
import { openDocPage } from './support/doc-page.ts'

/** What the specification and the contract name: a rule that no test names in its title is a rule that nobody proved. */
const NAMED = {
  endpoint: [
    'GET /api/v1/plans',
    'GET /api/v1/plans/{id}',
    'POST /api/v1/plans',
    'PATCH /api/v1/plans/{id}',
    'POST /api/v1/plans/{id}/prices',
    'PATCH /api/v1/plans/{id}/prices/{price_id}',
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
const TITLE = /\b(?:describe|it)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

describe('what the specification names', () => {
  const titles = titlesOfTests()

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

  for (const [kind, names] of Object.entries(NAMED)) {
    it(`each ${kind} is in the title of a test`, () => {
      expect(names).not.to.deep.equal([])
      expect(names.filter((name) => !titles.some((title) => mentions(title, name)))).to.deep.equal([])
    })
  }
})

function titlesOfTests(): string[] {
  const files = globSync('**/*.test.ts', { cwd: import.meta.dirname })
  return files.flatMap((file) =>
    [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(TITLE)].map(([, , title = '']) => title),
  )
}

/** The name itself, not the beginning of a longer one. */
function mentions(title: string, name: string): boolean {
  const start = title.indexOf(name)
  if (start === -1) return false
  const [before, after] = [title.slice(0, start), title.slice(start + name.length)]
  return (!/[\w.]$/.test(before) && !/^(\w|[./-]\w|\/\{)/.test(after)) || mentions(after, name)
}
