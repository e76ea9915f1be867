import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { PACKAGE_ROOT, SERVED_ROOT } from '#setup/systemd-unit.ts'
import { scratchFolder } from '../support/scratch.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Not compressed, for speed; the trial `package` builds as `npm run package` does. */
function build(into: string): string {
  const words = ['packaging/main.ts', '--quick', '--into', into]
  return execFileSync(process.execPath, words, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  }).trim()
}

describe('the Debian package', function () {
  this.timeout(300_000)
  let file: string
  let content: Map<string, string>
  let unpacked: string

  before(() => {
    const folder = scratchFolder('package')
    file = build(folder)
    unpacked = join(folder, 'unpacked')
    const lines = execFileSync('dpkg-deb', ['--contents', file], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      env: { ...process.env, TZ: 'UTC' },
    })
      .trim()
      .split('\n')
    content = new Map(lines.map((line) => [line.replace(/^.* \.(\/\S+).*$/, '$1'), line]))
  })

  it('gives every file the time of the commit, as the same bytes of each build need', () => {
    const seconds = execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' })
    const minute = new Date(Number(seconds) * 1000).toISOString().slice(0, 16).replace('T', ' ')
    expect([...content.values()].filter((line) => !line.includes(` ${minute} ./`))).to.deep.equal([])
  })

  it('brings program, Node, units, completion and the folder of the settings, all of root', () => {
    for (const path of [
      ...['/usr/bin/billing-cli', '/usr/lib/paygate/bin/billing-daemon', '/usr/lib/paygate/node_modules/node/bin/node'],
      ...['/usr/lib/systemd/system/billing-daemon.service', '/usr/share/bash-completion/completions/billing-cli'],
      ...['/etc/paygate/credentials/', '/usr/share/doc/paygate/copyright', '/usr/lib/paygate/migrations/migration.ts'],
    ])
      expect(content.get(path), path).to.include(' root/root ')
    expect(content.get('/etc/paygate/credentials/')).to.match(/^drwx------ /)
    expect([...content.keys()].filter((path) => /^\/(usr\/local|opt|home|tmp|var)\/./.test(path))).to.deep.equal([])
  })

  it('brings nothing that only tests and compilers need', () => {
    const development = [...content.keys()].filter((path) =>
      /node_modules\/(mocha|typescript|@types)\/|\/test\/cli\//.test(path),
    )
    expect(development).to.deep.equal([])
  })

  it('leaves the version that serves alone when it is installed over it, and its files are no others', () => {
    const control = scratchFolder('control')
    execFileSync('dpkg-deb', ['--control', file, control])
    const script = (name: string) => readFileSync(join(control, name), 'utf8')
    expect(execFileSync('sh', [join(control, 'prerm'), 'upgrade', '2.0.0'], { encoding: 'utf8' })).to.equal('')
    for (const name of ['postinst', 'prerm', 'postrm']) {
      execFileSync('sh', ['-n', join(control, name)])
      expect(script(name), name).not.to.match(/@[A-Z]+@|systemctl (re)?start|invoke restart/)
    }
    const unit = readFileSync(join(unpacked, 'usr/lib/systemd/system/billing-daemon.service'), 'utf8')
    expect(unit).to.include(`BindReadOnlyPaths=${SERVED_ROOT}:${PACKAGE_ROOT}\n`)
  })

  it('runs from its folder, with its own Node', () => {
    const root = join(unpacked, 'usr/lib/paygate')
    const run = (...words: readonly string[]) =>
      execFileSync(join(root, 'bin/billing-cli'), words, {
        encoding: 'utf8',
        env: { PATH: '/usr/bin:/bin', NODE_COMPILE_CACHE: '' },
      })
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect(run('--version').trim()).to.equal(version)
    expect(run('docs')).to.include('billing-cli setup')
    const loads = `for (const name of ['firebase-admin/auth', 'firebase-admin/database', 'typeorm', 'stripe', '@payos/node'])
      await import(name)`
    execFileSync(join(root, 'node_modules/.bin/node'), ['--input-type=module', '-e', loads], { cwd: root })
  })
})
