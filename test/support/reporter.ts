import { writeSync } from 'node:fs'
import Mocha from 'mocha'

const STDOUT = 1

/**
 * The spec reporter with one more line, the last: `N passed, N failed`, the runner's own counts. Where the runner does not come
 * to its end, because a test file does not load or something ends the process, one failure stands for that. Mocha asks for a
 * default export.
 */
export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    // In a run of minutes nobody waits for its end to see why.
    runner.on('fail', (_test, error: Error) => process.stdout.write(`${error.stack ?? error.message}\n`))
  }

  override done(failures: number, finished: (failures: number) => void): void {
    const { passes, failures: failed } = this.stats
    process.removeListener('exit', countCutShort)
    process.stdout.write(`${passes} passed, ${failed} failed\n`, () => finished(failures))
  }
}

function countCutShort(code: number): void {
  if (code === 0) process.exitCode = 1
  writeSync(STDOUT, '0 passed, 1 failed\n')
}

process.once('exit', countCutShort)
