import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { describeError } from '#shared/log.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The writes to standard output of a process that runs `body`, where `log` is a log of level `info`. */
async function writesOf(body: string): Promise<{ writes: string[]; signal: string | null }> {
  const program = `import { openLog } from '#shared/log.ts'; const log = openLog('info'); ${body}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT })
  const writes: string[] = []
  child.stdout.on('data', (chunk: Buffer) => writes.push(chunk.toString('utf8')))
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { writes, signal }
}

const linesOf = (writes: readonly string[]): unknown[] =>
  writes
    .join('')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { msg: unknown }).msg)

describe('lines of the log', () => {
  it('are written together, a fiftieth of a second later at most', async () => {
    const { writes } = await writesOf(`
      for (let number = 0; number < 5; number += 1) log.info('line ' + number)
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), 500)`)
    expect(writes).to.have.length(1)
    expect(linesOf(writes)).to.deep.equal(['line 0', 'line 1', 'line 2', 'line 3', 'line 4'])
  })

  it('are written at once where one is a warning, after those before it', async () => {
    const { writes, signal } = await writesOf(
      `log.info('first'); log.warn('second'); process.kill(process.pid, 'SIGKILL')`,
    )
    expect([linesOf(writes), signal]).to.deep.equal([['first', 'second'], 'SIGKILL'])
  })

  it('are all written where the process ends by an error or by its own decision', async () => {
    for (const end of ['process.exit(3)', `throw new Error('crashed')`, '']) {
      const { writes } = await writesOf(`log.info('last words'); ${end}`)
      expect(linesOf(writes), end).to.deep.equal(['last words'])
    }
  })

  it('are all written before a flush returns, as in a thread that is terminated next', async () => {
    const { writes, signal } = await writesOf(
      `log.info('last words'); log.flush(); process.kill(process.pid, 'SIGKILL')`,
    )
    expect([linesOf(writes), signal]).to.deep.equal([['last words'], 'SIGKILL'])
  })

  it('are written in pieces that a pipe takes whole, each of whole lines', async () => {
    const { writes } = await writesOf(`
      const fs = (await import('node:fs')).default
      const lengths = []
      const { writeSync } = fs
      fs.writeSync = (fd, text, ...rest) => { lengths.push([Buffer.byteLength(text), text.endsWith('\\n')]); return writeSync(fd, text, ...rest) }
      for (let number = 0; number < 100; number += 1) log.info('x'.repeat(300))
      process.on('exit', () => { fs.writeSync = writeSync; log.error({ lengths }, 'lengths') })`)
    const { lengths } = JSON.parse(writes.join('').trimEnd().split('\n').at(-1)!) as { lengths: [number, boolean][] }
    expect(lengths.length).to.be.within(2, 30)
    for (const [bytes, isWhole] of lengths) expect([bytes <= 4096, isWhole]).to.deep.equal([true, true])
  })

  it('stop no work where their reader has gone or the disk is full', async () => {
    const program = `import { openLog } from '#shared/log.ts'
      const log = openLog('info')
      process.stdin.resume().on('end', () => {
        log.warn('lost')
        log.info('lost, too')
        process.stderr.write('worked')
      })`
    const full = openSync('/dev/full', 'w')
    for (const stdout of ['pipe', full] as const) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        cwd: ROOT,
        stdio: ['pipe', stdout, 'pipe'],
      })
      if (child.stdout) await once(child.stdout.destroy(), 'close')
      child.stdin!.end()
      const ended = once(child, 'close') as Promise<[number | null]>
      expect([await text(child.stderr!), (await ended)[0]]).to.deep.equal(['worked', 0])
    }
    closeSync(full)
  })
})

describe('what the log says of an error', () => {
  it('is its message, code and number, and never the statement that it came with', () => {
    const error = Object.assign(new Error('Deadlock found'), {
      code: 'ER_LOCK_DEADLOCK',
      errno: 1213,
      sql: 'SELECT secret',
    })
    expect(describeError(error)).to.include({
      name: 'Error',
      message: 'Deadlock found',
      code: 'ER_LOCK_DEADLOCK',
      errno: 1213,
    })
    expect(JSON.stringify(describeError(error))).to.not.include('secret')
  })

  it('is the same if it came from another thread as a plain object', () => {
    expect(describeError({ message: 'Deadlock found', errno: 1213 })).to.include({
      message: 'Deadlock found',
      errno: 1213,
    })
  })

  it('is a word for anything else', () => {
    expect(
      [{ sql: 'SELECT secret' }, null, undefined, 'gone'].map((thrown) => describeError(thrown)['message']),
    ).to.deep.equal(['an object that is no error', 'null', 'undefined', 'gone'])
  })
})
