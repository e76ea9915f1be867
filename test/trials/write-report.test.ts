import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { scratchFolder } from '../support/scratch.ts'
import { writeReport, type TrialRun } from './write-report.ts'

const NAMES = ['first', 'second', 'third']

function aRun(name: string, changes: Partial<TrialRun> = {}): TrialRun {
  return {
    ...{ name, seed: 7, startedAt: new Date('2026-11-22T01:02:03Z'), seconds: 12.345, machine: '2 cores' },
    outcome: { figures: { rounds: 500, seconds: { start: 1.5, stop: 2 }, gone: null } },
    ...changes,
  }
}

describe('the report of the trials', () => {
  let path: string
  beforeEach(() => {
    path = join(scratchFolder('report'), 'trials.md')
  })
  const rows = () =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => /^\| (first|second|third|old) /.test(line))

  it('has a row with figures for each trial, in order', () => {
    writeReport(path, NAMES, [aRun('second', { seed: null }), aRun('first')], true)
    const figures = 'rounds 500, seconds (start 1.5, stop 2), gone null'
    expect(rows()).to.deep.equal([
      `| first | held | 2026-11-22 01:02:03 | 12.3 | 7 | 2 cores | ${figures} |`,
      `| second | held | 2026-11-22 01:02:03 | 12.3 | - | 2 cores | ${figures} |`,
    ])
    expect(existsSync(`${path}.tmp`)).to.equal(false)
  })

  it('keeps the rows of trials that a partial run left out, except of removed trials', () => {
    writeReport(
      path,
      ['old', ...NAMES],
      NAMES.concat('old').map((name) => aRun(name)),
      true,
    )
    const before = rows()
    const failed = aRun('second', { outcome: { error: 'a | b\n`c` <d>' } })
    writeReport(path, NAMES, [failed], false)
    expect(rows()).to.deep.equal([
      before[1],
      '| second | **failed** | 2026-11-22 01:02:03 | 12.3 | 7 | 2 cores | a \\| b \\`c\\` \\<d> |',
      before[3],
    ])
  })

  it('is rewritten completely by a run of all trials', () => {
    writeReport(path, NAMES, [aRun('first'), aRun('second')], true)
    writeReport(path, NAMES, [aRun('third')], true)
    expect(rows().map((row) => row.split(' ')[1])).to.deep.equal(['third'])
  })
})
