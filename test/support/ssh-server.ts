import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-ports.ts'
import { scratchFolder } from './scratch.ts'

const SSHD = '/usr/sbin/sshd'
const AS_NOBODY = join(import.meta.dirname, 'as-nobody')
/** Gives the account a shell, a home and a name, without changing the machine's own list of accounts. */
const NSS_WRAPPER = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/libnss_wrapper.so`).find(existsSync)
const ACCOUNT = 'billing'

/** What an ssh ended with. */
export interface SshRan {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Debian's sshd on loopback, with an account that is not root and the keys of operators. */
export interface SshServer {
  readonly port: number
  /** Makes a key pair; returns the file of the private key. */
  makeKey(name: string): string
  /** Adds a line to the account's authorized_keys. */
  authorize(line: string): void
  /** The arguments of ssh, and of nothing else of its family, before the line that it asks for. */
  argumentsFor(name: string): string[]
  /** Runs ssh with the operator's key. */
  ssh(name: string, words: readonly string[], env?: Readonly<Record<string, string>>): Promise<SshRan>
  /** Runs another program of the family, such as scp. */
  client(program: string, words: readonly string[]): Promise<SshRan>
  stop(): Promise<void>
}

/** `settings` are those of the account, from which the forced command gets them. Forwarding is on: only the keys' own options forbid it. */
export async function startSshServer(settings: Readonly<Record<string, string>>): Promise<SshServer> {
  const folder = scratchFolder('ssh')
  const port = await freePort()
  const file = (name: string): string => join(folder, name)
  const lines: string[] = []
  const makeKey = (name: string): string => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', `${name}@laptop`, '-f', file(name)])
    return file(name)
  }
  mkdirSync(file('home'))
  writeFileSync(file('authorized_keys'), '')
  writeFileSync(file('sshd_config'), configOf({ folder, port, hostKey: makeKey('host'), settings }))
  const uid = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0)
  writeFileSync(file('passwd'), `${ACCOUNT}:x:${uid}:${uid}::${file('home')}:/bin/sh\n`)
  writeFileSync(file('group'), `${ACCOUNT}:x:${uid}:\n`)
  const names = { NSS_WRAPPER_PASSWD: file('passwd'), NSS_WRAPPER_GROUP: file('group'), LD_PRELOAD: NSS_WRAPPER ?? '' }
  const wrapper = Object.entries(names).map(([name, value]) => `${name}=${value}`)
  const server = spawn(AS_NOBODY, ['env', ...wrapper, SSHD, '-D', '-e', '-f', file('sshd_config')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await listening(server.stderr)
  const argumentsFor = (name: string): string[] => [
    ...['-F', 'none', '-i', file(name), '-o', 'IdentitiesOnly=yes', '-o', 'BatchMode=yes', '-o', 'LogLevel=ERROR'],
    ...['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'],
  ]
  const client = (program: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    ran(program, words, { PATH: process.env['PATH'] ?? '', ...env })
  const destination = ['-p', String(port), `${ACCOUNT}@127.0.0.1`]
  return {
    port,
    makeKey,
    authorize: (line) => {
      lines.push(line)
      writeFileSync(file('authorized_keys'), `${lines.join('\n')}\n`)
    },
    argumentsFor: (name) => [...argumentsFor(name), ...destination],
    ssh: (name, words, env) => client('ssh', [...argumentsFor(name), ...destination, ...words], env),
    client,
    stop: async () => {
      const ended = once(server, 'exit')
      server.kill()
      await ended
    },
  }
}

interface Site {
  readonly folder: string
  readonly port: number
  readonly hostKey: string
  readonly settings: Readonly<Record<string, string>>
}

/** As Debian's, where it matters: the client may set LANG and LC_*, and forwarding, sftp and terminals are on. */
function configOf({ folder, port, hostKey, settings }: Site): string {
  const environment = Object.entries(settings).map(([name, value]) => `"${name}=${value}"`)
  return [
    `ListenAddress 127.0.0.1:${port}`,
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${join(folder, 'authorized_keys')}`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'AcceptEnv LANG LC_*',
    'AllowTcpForwarding yes',
    'AllowAgentForwarding yes',
    'PermitTunnel yes',
    'X11Forwarding yes',
    'MaxStartups 100',
    'LoginGraceTime 300',
    'Subsystem sftp internal-sftp',
    `SetEnv ${environment.join(' ')}`,
    '',
  ].join('\n')
}

async function listening(log: NodeJS.ReadableStream): Promise<void> {
  let text = ''
  for await (const chunk of log) {
    text += String(chunk)
    if (!text.includes('Server listening')) continue
    log.resume()
    return
  }
  throw new Error(`sshd does not start: ${text}`)
}

async function ran(program: string, words: readonly string[], env: Readonly<Record<string, string>>): Promise<SshRan> {
  const { promise, resolve } = Promise.withResolvers<SshRan>()
  const child = execFile(program, words, { env }, (error, stdout, stderr) =>
    resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
  )
  child.stdin?.end()
  return promise
}
