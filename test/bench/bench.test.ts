import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { cellsOf } from '../../bench/report.ts'
import type { Row } from '../../bench/row.ts'

const RUN = join(import.meta.dirname, '../../bench/run.ts')
const ROWS = [
  ...['read', 'read-p99', 'checkout', 'checkout-p99', 'payment', 'webhooks', 'webhooks-bullmq', 'reminders'],
  ...['ready', 'memory', 'cli-help', 'cli-command', 'test-clock', 'due-query', 'due-query-sent'],
]

/** Not as a process that mocha keeps for several files, which would keep its database and never end. */
function run(...parameters: string[]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'MOCHA_WORKER_ID'))
  return spawnSync(process.execPath, [RUN, ...parameters], { encoding: 'utf8', env, timeout: 60_000 })
}

describe('the measurements', () => {
  it('print every row: figures of those that were run, "not run" of the others', () => {
    const { status, stdout, stderr } = run('--quick', 'cli-help')
    expect(status, stderr).to.equal(0)
    const table = stdout.slice(stdout.indexOf('\nrow ')).trim().split('\n').slice(1)
    expect(table.map((line) => line.split(/\s/)[0])).to.deep.equal(ROWS)
    const withFigures = table.filter((line) => /\d ms/.test(line)).map((line) => line.split(/\s/)[0])
    expect(withFigures).to.deep.equal(['cli-help', 'cli-command'])
    expect(table.filter((line) => line.endsWith('not run'))).to.have.length(ROWS.length - 2)
  })

  it('refuse a row that there is not, and name those that there are', () => {
    const { status, stderr } = run('wishes')
    expect(status).to.equal(1)
    expect(stderr).to.include('no such row: wishes').and.to.include(ROWS.join(', '))
  })
})

describe('the report of a measurement', () => {
  const share: Row = {
    ...{ name: 'read', what: 'reads', floor: 'Koa', unit: 'a second' },
    ...{ judged: 'share', must: 0.6, goal: 0.8 },
  }
  const rounds = (...ours: number[]) => ({ rounds: ours.map((each) => ({ ours: each, floor: 100 })) })
  const figuresOf = (row: Row, ...ours: number[]) => cellsOf(row, rounds(...ours)).slice(3)

  it('has the median of the rounds, their ends, and what it is of the floor', () => {
    expect(figuresOf(share, 60, 90, 70)).to.deep.equal([
      ...[
        '70.0 (60.0 to 90.0) a second',
        '100 (100 to 100) a second',
        '0.700 (0.600 to 0.900)',
        '0.60',
        '0.80',
        'must',
      ],
    ])
  })

  for (const [ours, verdict] of [
    [80, 'goal'],
    [60, 'must'],
    [59, '**no**'],
  ] as const) {
    it(`says of a share of ${ours} of 100: ${verdict}`, () => {
      expect(figuresOf(share, ours).at(-1)).to.equal(verdict)
    })
  }

  for (const [ours, verdict] of [
    [150, 'goal'],
    [200, 'must'],
    [201, '**no**'],
  ] as const) {
    it(`says of ${ours} if 100 is the floor and less is better: ${verdict}`, () => {
      const multiple: Row = { ...share, unit: 'ms', judged: 'multiple', must: 2, goal: 1.5 }
      expect(figuresOf(multiple, ours).at(-1)).to.equal(verdict)
    })
  }

  it('judges the figure itself if there is no floor', () => {
    const value: Row = { ...share, floor: null, unit: 'MB', judged: 'value', must: 220, goal: 150 }
    const cells = cellsOf(value, { rounds: [{ ours: 180, floor: null }] })
    expect(cells.slice(2)).to.deep.equal(['-', '180 MB', '-', '-', '220 MB', '150 MB', 'must'])
  })

  it('says why a row was skipped', () => {
    expect(cellsOf(share, { skipped: 'skipped: there is no redis-server' }).at(-1)).to.equal(
      'skipped: there is no redis-server',
    )
  })
})
