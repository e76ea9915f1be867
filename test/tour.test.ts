import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import type { Shown } from './cli/shown.ts'
import { openDocPage } from './support/doc-page.ts'
import { isAlive } from './support/processes.ts'
import { scratchFolder } from './support/scratch.ts'
import { freePort } from './support/free-ports.ts'
import { Shell, withoutChance } from './support/shell.ts'
import { until } from './support/until.ts'

const ROOT = join(import.meta.dirname, '..')
const PORT = '9099'

/** A block of commands as the README has it, and what it says that they print; null if it says nothing. */
interface Step {
  readonly commands: string
  readonly prints: string | null
}

const steps = (text: string): Step[] => {
  const blocks = text.matchAll(/^```bash\n(.*?)^```(?:\n\n```text\n(.*?)^```)?/gms)
  return [...blocks].map(([, commands = '', prints]) => ({ commands, prints: prints ?? null }))
}

describe('the tour of the README', () => {
  const home = scratchFolder('tour')
  const shell = new Shell(ROOT, { PATH: process.env['PATH'] ?? '', HOME: home, BILLING_HOME: home })
  let daemonPid: number | null = null

  after(async () => {
    await shell.close()
    if (daemonPid === null) return
    process.kill(daemonPid, 'SIGTERM')
    await until(() => !isAlive(daemonPid!))
  })

  it('does what it says, pasted into a shell block by block', async () => {
    const [start, ...others] = steps(openDocPage('README.md').section('Five-minute tour'))
    const started = await shell.paste(start!.commands)
    daemonPid = Number(/stop it with: kill (\d+)/.exec(started)?.[1])
    const settings = started.split('\n').filter((line) => line.startsWith('export '))
    expect(settings.length).to.be.greaterThan(4)
    await shell.paste(settings.join('\n'))
    const watched = await shell.paste('bin/billing-cli watch --once --json')
    expect((JSON.parse(watched) as Shown<'watch'>).daemon, 'watch sees the daemon').to.include({ answers: true })
    const called = await shell.paste('bin/pinned-node 1 client/src/cli/main.ts request GET /plans')
    expect(called, 'npx paygate has its keys').to.include('"code": "premium"')
    const port = String(await freePort())
    for (const { commands, prints } of others) {
      // What went out a moment ago is at the receiver before somebody has pasted the next block.
      if (commands.includes('uniq -c')) await until(() => received(home).length === countOf(prints))
      const printed = await shell.paste(commands.replaceAll(PORT, port))
      if (prints !== null) expect(withoutChance(printed)).to.equal(withoutChance(prints))
    }
    expect(others.filter(({ prints }) => prints !== null).length).to.be.greaterThan(4)
    expect(received(home).filter((line) => !line.startsWith('genuine '))).to.deep.equal([])
  })
})

const received = (home: string) => readFileSync(join(home, 'received'), 'utf8').split('\n').filter(Boolean)

/** The sum of what `uniq -c` counts. */
const countOf = (prints: string | null) =>
  [...(prints ?? '').matchAll(/^ *(\d+) /gm)].reduce((sum, [, count]) => sum + Number(count), 0)
