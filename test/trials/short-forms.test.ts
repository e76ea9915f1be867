import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

/** These need separate servers or machines, or an older version of the repository. */
const LONG_ONLY = [
  'databases',
  'debianPackage',
  'galera',
  'haproxy',
  'mailServer',
  'mysqlGroup',
  'operatorWalk',
  'router',
  'upgradeUnderLoad',
]

const read = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8')

describe('the trials', () => {
  it('have a short form that continuous integration runs, except those that need separate servers or an older version', () => {
    const imports = read('trials.ts').matchAll(/^import \{ (.+) \} from '\.\//gm)
    const trials = [...imports].flatMap(([, names = '']) => names.split(', ')).filter((name) => /^[a-z]/.test(name))
    expect(trials.length).to.be.above(LONG_ONLY.length + 10)
    const tests = globSync('*.test.ts', { cwd: import.meta.dirname })
      .map(read)
      .join('\n')
    expect(trials.filter((name) => !tests.includes(`${name}(`)).sort()).to.deep.equal(LONG_ONLY)
  })
})
