import { writeSync } from 'node:fs'
import Mocha from 'mocha'

const STDOUT = 1

/**
 * The spec reporter with a last line, `N passed, N failed`, of the runner's own counts. When the runner does not finish, because a
 * test file does not load or something ends the process, that counts as one failure. Mocha requires a default export.
 */
export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    // Shows the reason at once, not at the end of a run of minutes.
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
