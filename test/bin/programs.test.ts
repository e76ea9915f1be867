import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, beforeEach, describe, it } from 'mocha'
import { MAIL_PROGRAMS } from '../trials/mail-server-rig.ts'
import { WALK_PROGRAMS } from '../trials/operator-walk.ts'
import { scratchFolder } from '../support/scratch.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PATH_OF_TOOLS = process.env['PATH'] ?? ''
const PROGRAMS = { 'billing-daemon': 1, 'billing-cli': 1, 'bank-mail-relay': 75 }

interface Outcome {
  code: unknown
  stdout: string
  stderr: string
}

describe('the programs in bin', () => {
  let directory: string

  before(() => {
    directory = scratchFolder("paygate's bin")
    cpSync(join(ROOT, 'bin'), join(directory, 'fresh', 'bin'), { recursive: true })
    // A project whose programs say what they run under, and with what.
    cpSync(join(ROOT, 'bin'), join(directory, 'installed', 'bin'), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'installed', 'node_modules'))
    for (const path of ['daemon/main.ts', 'cli/main.ts', 'cli/bank-mail-relay.ts']) {
      const file = join(directory, 'installed', 'src', path)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(
        file,
        `process.stdout.write(JSON.stringify([process.version, process.cwd(), ...process.argv.slice(2)]))\n`,
      )
    }
  })

  for (const [program, missing] of Object.entries(PROGRAMS)) {
    it(`${program} runs under the pinned Node from any directory, through a link, with its arguments as they are`, async () => {
      const link = join(directory, program)
      symlinkSync(join(directory, 'installed', 'bin', program), link)
      const { code, stdout } = await run(link, ['a b', '', "it's", '--json'])
      expect(JSON.parse(stdout)).to.deep.equal([process.version, tmpdir(), 'a b', '', "it's", '--json'])
      expect(code).to.equal(0)
    })

    it(`${program} says that npm ci is missing, and exits ${missing}`, async () => {
      const { code, stderr } = await run(join(directory, 'fresh', 'bin', program), [])
      expect(stderr).to.include(`run 'npm ci' in ${join(directory, 'fresh')}`)
      expect(code).to.equal(missing)
    })
  }

  it('system-packages is silent if nothing is missing', async () => {
    expect(await run(join(ROOT, 'bin', 'system-packages'), ['--test'])).to.deep.equal({
      code: 0,
      stdout: '',
      stderr: '',
    })
  })

  it('system-packages --trials knows what brings each program of the trials’ machines', () => {
    const needs = readFileSync(join(ROOT, 'bin', 'system-packages'), 'utf8')
    const brought = new Set(
      needs.split('\n').flatMap((line) => /^[a-z0-9-]+ +(\S+)$/.exec(line)?.[1]?.split('|') ?? []),
    )
    expect([...MAIL_PROGRAMS, ...WALK_PROGRAMS].filter((program) => !brought.has(program))).to.deep.equal([])
  })

  it('system-packages knows no other option', async () => {
    expect((await run(join(ROOT, 'bin', 'system-packages'), ['--all'])).code).to.equal(2)
  })

  it('database-packages knows MySQL and MariaDB alone', async () => {
    expect((await run(join(ROOT, 'bin', 'database-packages'), ['postgresql', directory])).code).to.equal(2)
  })

  it('test says before it begins that root cannot become another user here, and how the tests can run', async () => {
    const project = join(directory, 'confined')
    cpSync(join(ROOT, 'bin'), join(project, 'bin'), { recursive: true })
    cpSync(join(ROOT, 'test', 'support', 'as-nobody'), join(project, 'test', 'support', 'as-nobody'))
    writeFileSync(join(project, 'id'), '#!/bin/sh\necho 0\n', { mode: 0o755 })
    const refusal = 'setpriv: setresuid failed: Operation not permitted'
    writeFileSync(join(project, 'setpriv'), `#!/bin/sh\necho '${refusal}' >&2\nexit 1\n`, { mode: 0o755 })
    writeFileSync(join(project, 'npm'), '#!/bin/sh\necho npm was started >&2\n', { mode: 0o755 })
    const { code, stdout, stderr } = await run(join(project, 'bin', 'test'), [], {
      PATH: `${project}:${PATH_OF_TOOLS}`,
    })
    expect([code, stdout]).to.deep.equal([1, '0 passed, 1 failed\n'])
    expect(stderr).to.include(refusal).and.to.include('as an ordinary user').and.not.to.include('npm was started')
  })

  it('npm-packages is silent if nothing is missing', async () => {
    for (const options of [[], ['--test']]) {
      const outcome = await run(join(ROOT, 'bin', 'npm-packages'), options)
      expect(outcome).to.deep.equal({ code: 0, stdout: '', stderr: '' })
    }
  })

  describe('npm-packages', () => {
    let project: string
    let lock: string
    let installed: string

    // Stands for npm: says what it was asked for, and lists as npm does, last, what it installed.
    const npm = [
      '#!/bin/sh',
      'echo "npm $*" >&2',
      'case "$*" in *--omit=dev*) only=service ;; *) only=mocha ;; esac',
      'mkdir -p node_modules/.bin && cp /bin/true node_modules/.bin/node',
      `printf '{\n    "node_modules/%s": {\n' "$only" >node_modules/.package-lock.json`,
    ].join('\n')

    beforeEach(() => {
      project = mkdtempSync(join(directory, 'project-'))
      cpSync(join(ROOT, 'bin'), join(project, 'bin'), { recursive: true })
      lock = join(project, 'package-lock.json')
      installed = join(project, 'node_modules', '.package-lock.json')
      writeFileSync(lock, '{}')
      writeFileSync(join(project, 'npm'), npm, { mode: 0o755 })
    })

    const install = async (...options: string[]) => {
      const { code, stderr } = await run(join(project, 'bin', 'npm-packages'), options, {
        PATH: `${project}:${PATH_OF_TOOLS}`,
      })
      expect(code).to.equal(0)
      return stderr.split('\n').filter((line) => line.startsWith('npm '))
    }
    const FLAGS = '--no-progress --no-update-notifier --loglevel=error'

    it('installs the service’s packages alone, once', async () => {
      expect(await install()).to.deep.equal([`npm ci --omit=dev ${FLAGS}`])
      expect(await install()).to.deep.equal([])
    })

    it('adds the tests’ packages to the service’s and leaves those in place', async () => {
      await install()
      expect(await install('--test')).to.deep.equal([`npm install --no-save ${FLAGS}`])
      expect(await install('--test')).to.deep.equal([])
      expect(await install()).to.deep.equal([])
    })

    it('installs anew what was cut short', async () => {
      await install('--test')
      rmSync(installed)
      expect(await install('--test')).to.deep.equal([`npm ci ${FLAGS}`])
    })

    it('follows a lock file that changed, and keeps the tests’ packages where they are', async () => {
      await install('--test')
      utimesSync(installed, 1, 1)
      expect(await install()).to.deep.equal([`npm install --no-save ${FLAGS}`])
      expect(await install()).to.deep.equal([])
    })
  })
})

describe('the last line of a test run', () => {
  let directory: string

  before(() => (directory = scratchFolder('count')))

  const runs = [
    [
      'counts what passed and what failed',
      `it('a', () => {}); it('b', () => { throw new Error('no') })`,
      '1 passed, 1 failed',
    ],
    ['counts one failure where a test file does not load', `import './not-there.ts'`, '0 passed, 1 failed'],
    ['counts one failure where a test file is no program', `it(`, '0 passed, 1 failed'],
    ['counts one failure where a test ends the process', `it('a', () => process.exit(0))`, '0 passed, 1 failed'],
  ] as const
  const modes = [[], ['--parallel', '--jobs', '2']]
  for (const [[rule, body, last], mode] of runs.flatMap((each) => modes.map((mode) => [each, mode] as const))) {
    it([rule, ...mode].join(' '), async () => {
      const file = join(directory, 'one.test.mjs')
      writeFileSync(file, body)
      const reporter = join(ROOT, 'test', 'support', 'reporter.ts')
      const mocha = join(ROOT, 'node_modules', 'mocha', 'bin', 'mocha.js')
      const { code, stdout } = await run(process.execPath, [
        mocha,
        '--no-config',
        '--reporter',
        reporter,
        ...mode,
        file,
      ])
      expect(stdout.trimEnd().split('\n').at(-1)).to.equal(last)
      expect(code).to.equal(1)
    })
  }

  describe('of continuous integration', () => {
    let project: string

    beforeEach(() => {
      project = mkdtempSync(join(directory, 'project-'))
      cpSync(join(ROOT, '.ci'), join(project, '.ci'), { recursive: true })
    })

    /** Stands for a program: `body` is its script. */
    const stub = (name: string, body: string): void => {
      mkdirSync(join(project, name, '..'), { recursive: true })
      writeFileSync(join(project, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
    }
    const lines = async (...words: string[]): Promise<[code: unknown, lines: string[]]> => {
      const { code, stdout } = await run(join(project, '.ci', 'run'), words, { PATH: `${project}:${PATH_OF_TOOLS}` })
      return [code, stdout.trimEnd().split('\n')]
    }
    const BOTH = `case "$*" in *mysql*) echo '2 passed, 1 failed'; exit 1 ;; *) echo '5 passed, 0 failed' ;; esac`

    it('counts one failure for each run that is killed', async () => {
      stub('npm', 'echo "  ✔ a rule"; kill -9 $$')
      const [code, printed] = await lines()
      expect(printed.at(-1)).to.equal('0 passed, 2 failed')
      expect(code).to.equal(1)
    })

    it('is the sum of the tests and the trials on MariaDB, and of the tests on MySQL', async () => {
      stub('npm', `echo "$*"; ${BOTH}`)
      stub('bin/database-packages', 'exit 0')
      const [code, printed] = await lines()
      expect(printed.at(-1)).to.equal('12 passed, 1 failed')
      expect(code).to.equal(1)
      expect(printed.filter((line) => line.endsWith('test/trials'))).to.have.length(1)
      expect(printed.filter((line) => line.includes('--database'))).to.deep.equal(['test --silent -- --database mysql'])
    })

    it('is that of the runs on MariaDB where MySQL cannot be had, which one line says', async () => {
      stub('npm', BOTH)
      stub('bin/database-packages', `echo 'Fetching' >&2; echo 'MySQL cannot be fetched: no network' >&2; exit 1`)
      expect(await lines()).to.deep.equal([
        0,
        [
          '5 passed, 0 failed',
          '5 passed, 0 failed',
          'Not run on MySQL: MySQL cannot be fetched: no network',
          '10 passed, 0 failed',
        ],
      ])
    })

    it('is that of the tests that were asked for, on MariaDB alone', async () => {
      stub('npm', BOTH)
      stub('bin/database-packages', 'exit 0')
      expect(await lines('test/plans')).to.deep.equal([0, ['5 passed, 0 failed', '5 passed, 0 failed']])
    })
  })
})

function run(program: string, parameters: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  execFile(program, parameters, { cwd: tmpdir(), env: { ...process.env, ...env } }, (error, stdout, stderr) =>
    resolve({ code: error ? error.code : 0, stdout, stderr }),
  )
  return promise
}
