import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { COMPLETION_SCRIPTS } from '#cli/shells.ts'
import { productVersion } from '#product-version.ts'
import { PACKAGE_CLI_FILE, PACKAGE_ROOT, renderCli, VERSIONS_FOLDER } from '#setup/systemd-unit.ts'
import { packageUnits } from '#setup/units.ts'

const ROOT = join(import.meta.dirname, '..')
const CONTROL = join(import.meta.dirname, 'debian')
const PROGRAMS = ['billing-cli', 'billing-daemon', 'bank-mail-relay', 'pinned-node']
/** What only compilers and readers of a package's sources use. */
const UNUSED = /(\.d\.[cm]?ts|\.map|\.flow|(?<!licen[cs]e[^/]*)\.(md|markdown))$/i

/**
 * Makes `dist/paygate_<version>_<arch>.deb` and prints its path. Two builds of one commit have the same bytes (R435).
 *   npm run package [-- [--into <folder>] [--quick]]
 * For tests, `--quick` does not compress, and leaves what was packed in the folder `unpacked` beside the package.
 */
function main(): void {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, into: { type: 'string' } } })
  const dist = values.into ?? join(ROOT, 'dist')
  const version = productVersion()
  const architecture = run('dpkg', '--print-architecture')
  const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? run('git', 'log', '-1', '--format=%ct'))
  mkdirSync(dist, { recursive: true })
  const stage = values.quick ? join(dist, 'unpacked') : mkdtempSync(join(dist, '.stage-'))
  mkdirSync(stage, { recursive: true })
  const file = join(dist, `paygate_${version}_${architecture}.deb`)
  try {
    chmodSync(stage, 0o755)
    stageProgram(join(stage, PACKAGE_ROOT))
    stageSystem(stage, version, epoch)
    stageControl(stage, { VERSION: version, ARCHITECTURE: architecture })
    normalize(stage, epoch)
    execFileSync(
      'dpkg-deb',
      ['--root-owner-group', ...(values.quick ? ['-Znone'] : ['-Zxz']), '--build', stage, file],
      {
        env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
  } finally {
    if (!values.quick) rmSync(stage, { recursive: true, force: true })
  }
  process.stdout.write(`${file}\n`)
}

function run(program: string, ...words: readonly string[]): string {
  return execFileSync(program, words, { cwd: ROOT, encoding: 'utf8' }).trim()
}

/** The files that git knows, and the packages that production needs. */
function stageProgram(target: string): void {
  const tracked = run('git', 'ls-files', 'src', 'jobs', 'migrations', 'templates').split('\n')
  const programs = PROGRAMS.map((name) => `bin/${name}`)
  for (const path of [...tracked, ...programs, 'package.json']) copy(join(ROOT, path), join(target, path))
  for (const folder of productionPackages()) stagePackage(folder, target)
  const node = join(target, 'node_modules/node/bin/node')
  copy(join(ROOT, 'node_modules/node/bin/node'), node)
  execFileSync('strip', ['--strip-unneeded', '--enable-deterministic-archives', node])
  mkdirSync(join(target, 'node_modules/.bin'))
  symlinkSync('../node/bin/node', join(target, 'node_modules/.bin/node'))
}

interface Locked {
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly optional?: boolean
}

/** By the lock file, rather than by what happens to be installed here. Types are for compilers. */
function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
  return Object.entries(lock.packages)
    .filter(([path, { dev, devOptional, optional }]) => path !== '' && !dev && !devOptional && !optional)
    .map(([path]) => path)
    .filter((path) => !/node_modules\/(@types\/|node$|node\/)/.test(path))
}

/** One package without those in it, which have entries of their own. */
function stagePackage(folder: string, target: string): void {
  const files = globSync('**/*', {
    cwd: join(ROOT, folder),
    withFileTypes: true,
    exclude: (entry) => entry.name === 'node_modules',
  })
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !UNUSED.test(path)) copy(path, join(target, path.slice(ROOT.length)))
  }
}

/** Without the modes of the checkout, which depend on a umask: only our programs and Node are run. */
function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
  chmodSync(to, /\/bin\/(node|billing-\w+|bank-mail-relay|pinned-node)$/.test(to) ? 0o755 : 0o644)
}

/** What the machine finds: units, programs, man pages, completion, documentation, and the folder of the settings. */
function stageSystem(stage: string, version: string, epoch: number): void {
  const write = (path: string, content: string | Buffer, mode = 0o644) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true })
    writeFileSync(join(stage, path), content, { mode })
  }
  for (const { name, content } of packageUnits()) write(`usr/lib/systemd/system/${name}`, content)
  write(PACKAGE_CLI_FILE, renderCli({ root: PACKAGE_ROOT, prefix: '' }), 0o755)
  for (const page of globSync('man/*.1', { cwd: ROOT }))
    write(`usr/share/man/man1/${page.slice('man/'.length)}.gz`, zipped(readFileSync(join(ROOT, page))))
  for (const [shell, path] of Object.entries(COMPLETIONS))
    write(path, `${COMPLETION_SCRIPTS[shell as keyof typeof COMPLETIONS]}\n`)
  const doc = 'usr/share/doc/paygate'
  for (const path of run('git', 'ls-files', 'docs/*.md', 'CHANGELOG.md', 'README.md').split('\n'))
    write(`${doc}/${path}`, readFileSync(join(ROOT, path)))
  write(`${doc}/changelog.gz`, zipped(changelog(version, epoch)))
  write(`${doc}/copyright`, readFileSync(join(CONTROL, 'copyright')))
  write('usr/share/lintian/overrides/paygate', readFileSync(join(CONTROL, 'lintian-overrides')))
  mkdirSync(join(stage, 'etc/paygate/credentials'), { recursive: true })
}

const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/billing-cli',
  zsh: 'usr/share/zsh/vendor-completions/_billing-cli',
  fish: 'usr/share/fish/vendor_completions.d/billing-cli.fish',
} as const

/** Of the best compression, which Debian asks of these files; without a time. */
function zipped(content: string | Buffer): Buffer {
  return gzipSync(content, { level: 9 })
}

function changelog(version: string, epoch: number): string {
  const [maintainer = ''] = /(?<=^Maintainer: ).*$/m.exec(readFileSync(join(CONTROL, 'control'), 'utf8')) ?? []
  const date = run('date', '--utc', `--date=@${epoch}`, '--rfc-email')
  return `paygate (${version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- ${maintainer}  ${date}\n`
}

function stageControl(stage: string, values: Readonly<Record<string, string>>): void {
  const units = packageUnits()
    .filter(({ content }) => content.includes('[Install]'))
    .map(({ name }) => name)
  const files = globSync('**/*', { cwd: stage, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort()
  const size = paths.reduce((sum, path) => sum + Math.ceil(lstatSync(path).size / 1024), 0)
  const all: Readonly<Record<string, string>> = {
    ...{ ...values, SIZE: String(size), UNITS: units.join(' ') },
    ...{ ROOT: PACKAGE_ROOT, VERSIONS: VERSIONS_FOLDER },
  }
  mkdirSync(join(stage, 'DEBIAN'))
  for (const name of ['control', 'templates', 'postinst', 'prerm', 'postrm']) {
    const text = readFileSync(join(CONTROL, name), 'utf8')
    const content = text.replace(/@([A-Z]+)@/g, (whole, key: string) => all[key] ?? whole)
    writeFileSync(join(stage, 'DEBIAN', name), content, { mode: /^p/.test(name) ? 0o755 : 0o644 })
  }
  const sums = paths.map((path) => `${md5(path)}  ${path.slice(stage.length + 1)}\n`)
  writeFileSync(join(stage, 'DEBIAN/md5sums'), sums.join(''), { mode: 0o644 })
}

function md5(path: string): string {
  return createHash('md5').update(readFileSync(path)).digest('hex')
}

/** The same modes and times in every build; dpkg-deb sorts, and makes root the owner. */
function normalize(stage: string, epoch: number): void {
  for (const entry of globSync('**', { cwd: stage, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) chmodSync(path, path.endsWith('/etc/paygate/credentials') ? 0o700 : 0o755)
    lutimesSync(path, epoch, epoch)
  }
}

if (!existsSync('/usr/bin/dpkg-deb')) throw new Error('a package is made on Debian: there is no dpkg-deb')
main()
