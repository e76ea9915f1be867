import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { openChapter } from './support/chapter.ts'
import { scratchFolder } from './support/scratch.ts'
import { until } from './support/until.ts'

const ROOT = join(import.meta.dirname, '..')
const PORT = '9099'
const END_OF_BLOCK = '@@@ the block has ended'

/** A block of commands as the README has it, and what it says that they print; null where it says nothing. */
interface Step {
  readonly commands: string
  readonly prints: string | null
}

const steps = (text: string): Step[] => {
  const blocks = text.matchAll(/^```bash\n(.*?)^```(?:\n\n```text\n(.*?)^```)?/gms)
  return [...blocks].map(([, commands = '', prints]) => ({ commands, prints: prints ?? null }))
}

/** What differs from run to run; and the README breaks its long lines. */
const withoutChance = (text: string): string =>
  text
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '<time>')
    .replaceAll(/\d{1,2} [A-Z][a-z]+ \d{4}/g, '<date>')
    .replaceAll(/[0-9a-f]{64}/g, '<token>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '<address>')
    .replaceAll(/\s+/g, '')

/** A shell into which somebody pastes one block after another. */
class Shell {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  #complaints = ''

  constructor(environment: Readonly<Record<string, string>>) {
    this.#child = spawn('bash', ['-euo', 'pipefail'], { cwd: ROOT, env: environment, detached: true })
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#complaints += chunk.toString('utf8')))
  }

  /** What the commands print; throws where one fails, which ends the shell. */
  async paste(commands: string): Promise<string> {
    this.#child.stdin.write(`${commands}\necho '${END_OF_BLOCK}'\n`)
    const printed: string[] = []
    for (;;) {
      const line = await this.#lines.next()
      if (line.done === true) throw new Error(`${commands}\n${printed.join('\n')}\n${this.#complaints}`)
      if (line.value === END_OF_BLOCK) return printed.join('\n')
      printed.push(line.value)
    }
  }

  /** Ends it with everything that it started. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const gone = once(this.#child, 'exit')
    process.kill(-this.#child.pid!, 'SIGKILL')
    await gone
  }
}

describe('the tour of the README', () => {
  const home = scratchFolder('tour')
  const shell = new Shell({ PATH: process.env['PATH'] ?? '', HOME: home, BILLING_HOME: home })
  let daemonPid: number | null = null

  after(async () => {
    await shell.close()
    if (daemonPid === null) return
    process.kill(daemonPid, 'SIGTERM')
    await until(() => !isAlive(daemonPid!))
  })

  it('does what it says, pasted into a shell block by block', async () => {
    const [start, ...others] = steps(openChapter('README.md').section('Five-minute tour'))
    const started = await shell.paste(start!.commands)
    daemonPid = Number(/end it with: kill (\d+)/.exec(started)?.[1])
    const settings = started.split('\n').filter((line) => line.startsWith('export '))
    expect(settings.length).to.be.greaterThan(4)
    await shell.paste(settings.join('\n'))
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

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
