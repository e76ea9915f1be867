import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const ROOT = join(import.meta.dirname, '..')

describe('SECURITY.md', () => {
  const text = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')

  it('names only files that there are', () => {
    const named = [...text.matchAll(/`((?:test|src|bin|templates)\/[^`]*\.[a-z]+)`/g)].map(([, path = '']) => path)
    expect(named.length).to.be.greaterThan(40)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).to.deep.equal([])
  })

  it('names a test for each attack', () => {
    const attacks = text.split('\n').filter((line) => line.startsWith('| ') && !line.includes('| tests |'))
    expect(attacks.length).to.be.greaterThan(25)
    expect(attacks.filter((line) => !/`test\/[^`]+\.test\.ts` \|$/.test(line))).to.deep.equal([])
  })

  it('is named in the README', () => {
    expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).to.include('(SECURITY.md)')
  })
})
