import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'

/** Settings of the supervisor. Paths are absolute. */
export interface EmbeddedSetup {
  readonly dataDirectory: string
  readonly temporaryDirectory: string
  readonly logFile: string
  readonly lockFile: string
  readonly supervisorSocket: string
  readonly serverSocket: string
  /** SQL that the server runs at each start, before it takes connections. */
  readonly startStatements: string
  /** The command that creates a data directory, without the directory's argument. */
  readonly install: readonly string[]
  readonly server: readonly string[]
  /** Who runs the server, where root uses that of another user, such as a service's; null: this user. */
  readonly owner: Owner | null
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

export type Family = 'MariaDB' | 'MySQL'

/** How an embedded server differs from the usual one. */
export interface EmbeddedOptions {
  /** Whose server; by default the one that made the database, or the first on the machine. */
  readonly family?: Family
  /** Further options of the server. */
  readonly flags?: readonly string[]
}

export const EMBEDDED_USER = 'root'
export const EMBEDDED_DATABASE = 'paygate'

/** The kernel's limit on the path of a UNIX socket is 107 bytes on Linux, 103 elsewhere. */
const MAX_SOCKET_PATH_BYTES = 103
/** Version 0.1.0 uses this name, and its processes may still run during an upgrade. */
const SUPERVISOR_SOCKET = 'keeper.sock'
/** The server writes it, and removes it when it stops. */
const PID_FILE = 'server.pid'
const SYSTEM_DIRECTORIES = [
  '/usr/sbin',
  '/usr/local/sbin',
  '/usr/libexec',
  '/usr/bin',
  '/usr/local/bin',
  '/usr/local/mysql/bin',
]

const SERVER_PROGRAMS = ['mariadbd', 'mysqld']
const NO_SERVER =
  'the embedded database needs a MariaDB or MySQL server program (mariadbd or mysqld), and there is none on this machine: ' +
  'apt-get install mariadb-server-core mariadb-client-core, or set BILLING_DATABASE_URL to the database of a server'

/** Of MySQL; nobody uses TLS on a socket. */
const WITHOUT_TLS_KEYS = ['--loose-auto-generate-certs=OFF', '--loose-caching-sha2-password-auto-generate-rsa-keys=OFF']

const SERVER_FLAGS = [
  '--skip-networking',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--loose-mysqlx=OFF',
  ...WITHOUT_TLS_KEYS,
  '--performance-schema=OFF',
  '--character-set-server=utf8mb4',
  '--collation-server=utf8mb4_unicode_ci',
  '--default-time-zone=+00:00',
  '--transaction-isolation=READ-COMMITTED',
  '--innodb-flush-log-at-trx-commit=1',
  '--innodb-buffer-pool-size=32M',
  // With 16M the server wrote the same pages again and again, a fifth of what a webhook delivery cost it.
  '--loose-innodb-log-file-size=64M',
  '--innodb-buffer-pool-dump-at-shutdown=OFF',
  '--innodb-buffer-pool-load-at-startup=OFF',
  '--key-buffer-size=1M',
  '--loose-aria-pagecache-buffer-size=8M',
  '--max-connections=300',
]

/**
 * Creates the directories of the embedded server (mode 0700) and returns how to run it. Two spellings of one home give the same result.
 * The server is the first program in `directories`, or the first of the family that made the database that is there.
 * Throws an error with the command to install a server if `directories` hold none.
 */
export function embeddedSetup(
  home: string,
  directories: readonly string[] = programDirectories(),
  { family, flags = [] }: EmbeddedOptions = {},
): EmbeddedSetup {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const owner = otherOwner(home)
  const directory = privateDirectory(join(realpathSync(home), 'database'), owner)
  const sockets = socketDirectory(directory, owner)
  const dataDirectory = join(directory, 'data')
  const server = findServer(directories, dataDirectory, family)
  const temporaryDirectory = privateDirectory(join(directory, 'tmp'), owner)
  const serverSocket = join(sockets, 'server.sock')
  const isRoot = process.getuid?.() === 0 && owner === null
  return {
    owner,
    dataDirectory,
    temporaryDirectory,
    logFile: join(directory, 'server.log'),
    lockFile: join(directory, 'lock'),
    supervisorSocket: join(sockets, SUPERVISOR_SOCKET),
    serverSocket,
    startStatements: `CREATE DATABASE IF NOT EXISTS ${EMBEDDED_DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;\n`,
    // Not --user: mariadb-install-db would change the owner of system files, and fails on blanks in the path.
    install: [...server.install, ...(isRoot ? ['--loose-user=root'] : [])],
    server: [
      server.program,
      '--no-defaults',
      ...SERVER_FLAGS,
      ...flags,
      // Both families refuse to run as root without this.
      ...(isRoot ? ['--user=root'] : []),
      `--datadir=${dataDirectory}`,
      `--tmpdir=${temporaryDirectory}`,
      // A MySQL of a distribution insists on a directory of its service, which another user may not read.
      `--secure-file-priv=${temporaryDirectory}`,
      `--socket=${serverSocket}`,
      `--pid-file=${join(directory, PID_FILE)}`,
    ],
  }
}

/** Whether the embedded server of a home is running, or was when it died. Creates nothing. */
export function isEmbeddedUp(home: string): boolean {
  return existsSync(join(home, 'database', PID_FILE))
}

interface ServerProgram {
  readonly program: string
  readonly install: readonly string[]
}

function findServer(directories: readonly string[], dataDirectory: string, family?: Family): ServerProgram {
  const maker = makerOf(dataDirectory) ?? family ?? null
  const programs = directories
    .flatMap((directory) => SERVER_PROGRAMS.map((name) => join(directory, name)))
    .filter(isProgram)
  const program = maker === null ? programs[0] : programs.find((found) => familyOf(found) === maker)
  if (program === undefined) throw new Error(maker === null ? NO_SERVER : noServerOf(maker, dataDirectory))
  if (familyOf(program) === 'MySQL') {
    return { program, install: [program, '--no-defaults', '--initialize-insecure', ...WITHOUT_TLS_KEYS] }
  }
  const install = findProgram('mariadb-install-db', directories) ?? findProgram('mysql_install_db', directories)
  if (!install) {
    throw new Error(
      `found ${program}, but not mariadb-install-db: apt-get install mariadb-server-core mariadb-client-core`,
    )
  }
  return {
    program,
    install: [install, '--no-defaults', '--force', '--auth-root-authentication-method=normal', '--skip-test-db'],
  }
}

const noServerOf = (maker: Family, dataDirectory: string): string =>
  `the embedded database in ${dataDirectory} was made by ${maker}, which is not on this machine: ` +
  `install the ${maker} server program, or set BILLING_DATABASE_URL to the database of a server`

/** Neither family opens a database of the other. Null if there is none yet. */
function makerOf(dataDirectory: string): Family | null {
  if (existsSync(join(dataDirectory, 'aria_log_control'))) return 'MariaDB'
  return existsSync(join(dataDirectory, 'mysql.ibd')) ? 'MySQL' : null
}

/** MariaDB has a program of MySQL's name, too. */
function familyOf(program: string): Family {
  if (program.endsWith('/mariadbd')) return 'MariaDB'
  const { stdout } = spawnSync(program, ['--no-defaults', '--version'], { encoding: 'utf8' })
  return stdout.includes('MariaDB') ? 'MariaDB' : 'MySQL'
}

/** PATH, and the usual directories of servers that an ordinary user's PATH lacks. */
function programDirectories(): string[] {
  const onPath = (childEnvironment({})['PATH'] ?? '').split(delimiter)
  return [...onPath.filter((directory) => directory !== ''), ...SYSTEM_DIRECTORIES]
}

/** The path of a program; null if there is none. */
export function findProgram(name: string, directories: readonly string[] = programDirectories()): string | null {
  return directories.map((directory) => join(directory, name)).find(isProgram) ?? null
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The directory itself if a socket's path fits the kernel's limit, else a short one in /tmp. */
function socketDirectory(directory: string, owner: Owner | null): string {
  if (Buffer.byteLength(join(directory, SUPERVISOR_SOCKET)) <= MAX_SOCKET_PATH_BYTES) return directory
  const name = createHash('sha256').update(directory).digest('hex').slice(0, 16)
  // Not the environment's temporary directory: daemon and CLI must find the same one.
  return privateDirectory(`/tmp/paygate-${owner?.uid ?? process.getuid?.() ?? 0}-${name}`, owner)
}

/** Root leaves the server of a home to the user whom the home belongs to, who must find all files to be their own. */
function otherOwner(home: string): Owner | null {
  const { uid, gid } = statSync(home)
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null
}

/** Creates the directory if needed. Throws unless this user, or the home's, owns it: whoever can enter it controls the database. */
function privateDirectory(path: string, owner: Owner | null): string {
  const isNew = mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined
  if (isNew && owner) chownSync(path, owner.uid, owner.gid)
  const found = lstatSync(path)
  const expected = owner?.uid ?? process.getuid?.()
  if (!found.isDirectory() || (expected !== undefined && found.uid !== expected)) {
    throw new Error(`${path} is not a directory that this user owns: move it away`)
  }
  chmodSync(path, 0o700)
  return path
}
