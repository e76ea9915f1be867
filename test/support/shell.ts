import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const END_OF_BLOCK = '@@@ the block has ended'

/** Masks what differs from run to run, and removes white space, because the documentation wraps its long lines. */
export const withoutChance = (text: string): string =>
  text
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '<time>')
    .replaceAll(/\d{1,2} [A-Z][a-z]+ \d{4}/g, '<date>')
    .replaceAll(/[0-9a-f]{64}/g, '<token>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '<address>')
    .replaceAll(/\s+/g, '')

/** A shell into which blocks of commands are pasted. */
export class Shell {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  #stderr = ''

  constructor(folder: string, environment: Readonly<Record<string, string>>) {
    this.#child = spawn('bash', ['-euo', 'pipefail'], { cwd: folder, env: environment, detached: true })
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString('utf8')))
  }

  /** Returns what the commands print; throws when one fails, which ends the shell. */
  async paste(commands: string): Promise<string> {
    this.#child.stdin.write(`${commands}\necho '${END_OF_BLOCK}'\n`)
    const printed: string[] = []
    for (;;) {
      const line = await this.#lines.next()
      if (line.done === true) throw new Error(`${commands}\n${printed.join('\n')}\n${this.#stderr}`)
      if (line.value === END_OF_BLOCK) return printed.join('\n')
      printed.push(line.value)
    }
  }

  /** Kills it with everything that it started. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const gone = once(this.#child, 'exit')
    process.kill(-this.#child.pid!, 'SIGKILL')
    await gone
  }
}
