import { spawn, spawnSync, type ChildProcess, type StdioOptions } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { childEnvironment } from '#config/environment.ts'
import type { Target } from '#db/connect.ts'
import { UNFINISHED_RESTORE } from '#db/unfinished-restore.ts'
import { findProgram, type Family } from '#embedded/setup.ts'

type Purpose = 'dump' | 'client'
/** Certificates or a key as the driver takes them. */
type Pem = string | Buffer | readonly (string | Buffer)[]

/** The programs of each family; MariaDB has them under MySQL's names, too. */
const NAMES: Readonly<Record<Purpose, Readonly<Record<Family, readonly string[]>>>> = {
  dump: { MariaDB: ['mariadb-dump', 'mysqldump'], MySQL: ['mysqldump'] },
  client: { MariaDB: ['mariadb', 'mysql'], MySQL: ['mysql'] },
}
const PACKAGE: Readonly<Record<Family, string>> = { MariaDB: 'mariadb-client', MySQL: 'mysql-client' }
/** Maximum length of a program's message: enough to see what is wrong. */
const MAX_MESSAGE = 2000

/** One transaction, columns named, nothing that needs more privileges than the service has. */
const DUMP_OPTIONS = [
  '--single-transaction',
  '--quick',
  '--complete-insert',
  '--hex-blob',
  '--no-tablespaces',
  '--skip-triggers',
  '--skip-add-drop-table',
  '--skip-add-locks',
  '--skip-disable-keys',
  '--default-character-set=utf8mb4',
]
const FAMILY_OPTIONS: Readonly<Record<Family, readonly string[]>> = {
  MariaDB: [],
  MySQL: ['--set-gtid-purged=OFF'],
}

/** A running program of the database. */
export interface RunningProgram {
  readonly child: ChildProcess
  /** Resolves if the program succeeds; otherwise rejects with its message. */
  readonly ended: Promise<void>
}

/** Writes the database as SQL to its standard output. */
export function startDump(family: Family, target: Target): RunningProgram {
  const options = [
    ...DUMP_OPTIONS,
    ...FAMILY_OPTIONS[family],
    `--ignore-table=${target.database}.${UNFINISHED_RESTORE}`,
  ]
  return start('dump', family, target, ['ignore', 'pipe', 'pipe'], options)
}

/**
 * Anybody who knows the public key can make a backup. Without `--binary-mode`, the program would run `\! command` in it as a shell does, and
 * with `local-infile` the backup could read files of this machine.
 */
const CLIENT_OPTIONS = ['--default-character-set=utf8mb4', '--batch', '--binary-mode', '--local-infile=0']

/** Runs the SQL on its standard input. */
export function startClient(family: Family, target: Target): RunningProgram {
  return start('client', family, target, ['pipe', 'ignore', 'pipe'], CLIENT_OPTIONS)
}

function start(
  purpose: Purpose,
  family: Family,
  target: Target,
  stdio: readonly ('ignore' | 'pipe')[],
  options: readonly string[],
): RunningProgram {
  const program = programOf(purpose, family)
  const secrets = new UnnamedFiles(stdio.length)
  const settings = secrets.add(optionFile(family, target, secrets))
  try {
    const child = spawn(program, [`--defaults-file=${settings}`, ...options, target.database], {
      stdio: [...stdio, ...secrets.descriptors] as StdioOptions,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
    })
    return { child, ended: ending(child, program) }
  } finally {
    secrets.close()
  }
}

function programOf(purpose: Purpose, family: Family): string {
  const found = NAMES[purpose][family].map((name) => findProgram(name)).find((path) => path && isOf(family, path))
  if (found) return found
  const [name] = NAMES[purpose][family]
  throw new Error(
    `the database is ${family}, and its program ${name} is not on this machine: apt-get install ${PACKAGE[family]}`,
  )
}

function isOf(family: Family, program: string): boolean {
  const { stdout } = spawnSync(program, ['--no-defaults', '--version'], { encoding: 'utf8', env: childEnvironment({}) })
  return stdout.includes('MariaDB') === (family === 'MariaDB')
}

function ending(child: ChildProcess, program: string): Promise<void> {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-MAX_MESSAGE)
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${program} failed: ${said.trim() || `it ended with ${signal ?? code}`}`))
    })
  })
  // The caller reads the output before it awaits the end: until then, a rejection must not count as unhandled.
  ended.catch(() => undefined)
  return ended
}

/** The server and how to log in: as a file, because anybody can read the arguments of a process. */
function optionFile(family: Family, target: Target, secrets: UnnamedFiles): string {
  const place =
    target.socketPath === undefined
      ? { host: target.host, port: target.port, protocol: 'TCP' }
      : { socket: target.socketPath, protocol: 'SOCKET' }
  const options = {
    ...place,
    user: target.user,
    password: target.password ?? '',
    ...tlsOptions(family, target, secrets),
  }
  const lines = Object.entries(options).map(([name, value]) => `${name}=${quoted(String(value))}`)
  return `[client]\n${lines.join('\n')}\n`
}

function tlsOptions(family: Family, { ssl }: Target, secrets: UnnamedFiles): Record<string, string | number> {
  if (ssl === undefined) return family === 'MariaDB' ? { ssl: 0 } : { 'get-server-public-key': 1 }
  const pem = (name: string, content: Pem | undefined): Record<string, string> =>
    content === undefined ? {} : { [name]: secrets.add([content].flat().join('\n')) }
  return {
    ...(family === 'MariaDB' ? { ssl: 1, 'ssl-verify-server-cert': 1 } : { 'ssl-mode': 'VERIFY_IDENTITY' }),
    ...pem('ssl-ca', ssl.ca ?? rootCertificates.join('\n')),
    ...pem('ssl-cert', ssl.cert),
    ...pem('ssl-key', ssl.key),
  }
}

function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
}

/** Files without a name, which a child process reads as its descriptors: nothing is left behind, even if a process is killed. */
class UnnamedFiles {
  readonly #first: number
  readonly descriptors: number[] = []

  /** `first`: the number of the first descriptor in the child. */
  constructor(first: number) {
    this.#first = first
  }

  /** Returns the path under which the child opens it. */
  add(content: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'paygate-'))
    try {
      const path = join(folder, 'file')
      writeFileSync(path, content, { mode: 0o600 })
      this.descriptors.push(openSync(path, 'r'))
    } finally {
      rmSync(folder, { recursive: true })
    }
    return `/dev/fd/${this.#first + this.descriptors.length - 1}`
  }

  close(): void {
    for (const descriptor of this.descriptors.splice(0)) closeSync(descriptor)
  }
}
