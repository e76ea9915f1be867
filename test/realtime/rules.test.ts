import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { nodeOf } from '#realtime/node.ts'
import { asAppTime, asRealTime } from '#shared/time.ts'

interface Outcome {
  readonly allowed: boolean
}

interface RulesDatabase {
  as(auth: { uid: string } | null): RulesDatabase
  read(path: string, options: { now: number }): Outcome
  write(path: string, value: unknown): Outcome
}

// The rules engine of the local database peer.
const targaryen = createRequire(createRequire(import.meta.url).resolve('firebase-server'))('targaryen') as {
  database(rules: unknown, data: unknown, now: number): RulesDatabase
}

const rules: unknown = JSON.parse(readFileSync('templates/firebase/database.rules.json', 'utf8'))
const now = asAppTime(new Date('2026-03-01T10:00:00Z'))
const writtenAt = asRealTime(now)
const at = { now: now.getTime() }
const running = nodeOf(
  { externalRef: 'an', currentPeriodEnd: asAppTime(new Date('2026-04-01T10:00:00Z')) },
  'change',
  now,
  writtenAt,
)
const over = nodeOf(
  { externalRef: 'an', currentPeriodEnd: asAppTime(new Date('2026-03-01T09:59:59Z')) },
  'change',
  now,
  writtenAt,
)
const lifetime = nodeOf({ externalRef: 'an', currentPeriodEnd: null }, 'change', now, writtenAt)
const free = nodeOf({ externalRef: 'an', currentPeriodEnd: now }, 'resync', now, writtenAt)

/** As the database stores it: without null values. */
const kept = (node: object) => Object.fromEntries(Object.entries(node).filter(([, value]) => value !== null))

function database(node: object | null, uid: string | null): RulesDatabase {
  const data = { users: { an: { ...(node ? { subscription: kept(node) } : {}) } }, premium: { article: 'text' } }
  return targaryen.database(rules, data, now.getTime()).as(uid === null ? null : { uid })
}

/** The rules that docs/client-apps.md recommends. */
describe('database rules for client developers', () => {
  it('only the end user reads their own node', () => {
    expect(database(running, 'an').read('users/an/subscription', at).allowed).to.equal(true)
    expect(database(running, 'binh').read('users/an/subscription', at).allowed).to.equal(false)
    expect(database(running, null).read('users/an/subscription', at).allowed).to.equal(false)
  })

  it('no client writes the node, a part of it, or its parents', () => {
    for (const uid of ['an', 'binh', null]) {
      for (const [path, value] of [
        ['users/an/subscription', lifetime],
        ['users/an/subscription/plan', 'premium'],
        ['users/an/subscription/expiresAt', null],
        ['users/an', { subscription: kept(lifetime) }],
        ['users', null],
      ] as const) {
        expect(database(free, uid).write(path, value).allowed, `${uid} ${path}`).to.equal(false)
      }
    }
  })

  it('an end user can still write their other data', () => {
    expect(database(running, 'an').write('users/an/profile', { name: 'An' }).allowed).to.equal(true)
    expect(database(running, 'binh').write('users/an/profile', { name: 'An' }).allowed).to.equal(false)
  })

  const cases = [
    ['a running period', running, true],
    ['an ended period', over, false],
    ['lifetime', lifetime, true],
    ['free', free, false],
    ['never bought', null, false],
  ] as const
  for (const [what, node, isPremium] of cases) {
    it(`${what}: premium content is ${isPremium ? 'open' : 'closed'}`, () => {
      expect(database(node, 'an').read('premium', at).allowed).to.equal(isPremium)
      expect(database(node, 'binh').read('premium', at).allowed).to.equal(false)
    })
  }
})
