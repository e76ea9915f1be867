import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { KEY, OUR_MX } from '../support/bank-mails.ts'
import { freePorts } from '../support/free-ports.ts'

/** The seller's mail server, a real one: Postfix with OpenDKIM, a name server for the keys, and a pipe into `bin/bank-mail-relay`. */
export interface MailServer {
  /** Delivers a mail by SMTP (swaks) to the server that always adds its results, or to one that adds none to unsigned mails. */
  deliver(mail: string, to: string, port: 'outspoken' | 'silent'): void
  /** Retries deferred mails now. */
  flush(): void
  log(): string
  stop(): Promise<void>
}

export const MAIL_PROGRAMS = ['/usr/sbin/postfix', '/usr/sbin/opendkim', '/usr/sbin/dnsmasq', '/usr/bin/swaks']
const RELAY = join(import.meta.dirname, '../../bin/bank-mail-relay')
const UP_MS = 15_000

/** Why the mail server cannot be started here; null if it can. */
export function mailServerLacks(): string | null {
  const missing = MAIL_PROGRAMS.filter((path) => !existsSync(path))
  if (missing.length > 0) return `${missing.join(', ')}: bin/system-packages --trials`
  return process.getuid?.() === 0 ? null : 'the right to start Postfix (root)'
}

interface Ports {
  readonly dns: number
  readonly outspokenMilter: number
  readonly silentMilter: number
  readonly outspoken: number
  readonly silent: number
}

/** Starts everything on loopback, on free ports, in a separate folder; neither reads nor changes the system's configuration. */
export async function startMailServer(relay: {
  readonly baseUrl: string
  readonly secret: string
}): Promise<MailServer> {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-mx-'))
  // Postfix's user and the pipe's user read it.
  chmodSync(folder, 0o755)
  const [dns = 0, outspokenMilter = 0, silentMilter = 0, outspoken = 0, silent = 0] = await freePorts(5)
  const ports: Ports = { dns, outspokenMilter, silentMilter, outspoken, silent }
  const children: ChildProcess[] = []
  const stop = async () => {
    if (existsSync(join(folder, 'spool/pid/master.pid'))) postfix(folder, 'stop')
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(children.filter(({ exitCode }) => exitCode === null).map((child) => once(child, 'exit')))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    writeNameServer(folder, ports)
    writeMilters(folder, ports)
    writePostfix(folder, ports, relay)
    children.push(start('/usr/sbin/dnsmasq', ['-C', join(folder, 'dns.conf'), '-x', join(folder, 'dns.pid')]))
    children.push(start('/usr/sbin/opendkim', ['-f', '-x', join(folder, 'outspoken.conf')]))
    children.push(start('/usr/sbin/opendkim', ['-f', '-x', join(folder, 'silent.conf')]))
    children.push(start('/usr/sbin/postfix', ['-c', join(folder, 'postfix'), 'start-fg']))
    for (const port of [ports.outspokenMilter, ports.silentMilter, ports.outspoken, ports.silent]) await untilUp(port)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    deliver: (mail, to, port) => swaks(folder, mail, to, ports[port]),
    flush: () => void execFileSync('/usr/sbin/postqueue', ['-c', join(folder, 'postfix'), '-f']),
    log: () => readFileSync(join(folder, 'mail.log'), 'utf8'),
    stop,
  }
}

function start(program: string, args: readonly string[]): ChildProcess {
  return spawn(program, args, { stdio: 'ignore' })
}

function postfix(folder: string, command: string): void {
  execFileSync('/usr/sbin/postfix', ['-c', join(folder, 'postfix'), command], { stdio: 'ignore' })
}

function swaks(folder: string, mail: string, to: string, port: number): void {
  const file = join(folder, 'mail.eml')
  writeFileSync(file, mail.replaceAll('\r\n', '\n'), 'latin1')
  const args = ['--server', `127.0.0.1:${port}`, '--from', 'bounce@bank.example', '--to', to, '--data', file]
  execFileSync('/usr/bin/swaks', [...args, '--suppress-data', '--timeout', '20'], { stdio: 'pipe' })
}

/** Keys of the bank and of an attacker. */
function writeNameServer(folder: string, { dns }: Ports): void {
  const key = KEY.publicKey.toString('base64')
  const record = `"v=DKIM1; k=rsa; p=${key.slice(0, 200)}","${key.slice(200)}"`
  const domains = ['acb.com.vn', 'timo.vn', 'evil.example']
  writeFileSync(
    join(folder, 'dns.conf'),
    [
      'no-resolv',
      'no-hosts',
      `port=${dns}`,
      'listen-address=127.0.0.1',
      'bind-interfaces',
      'keep-in-foreground',
      'user=root',
      ...domains.flatMap((domain) => [`local=/${domain}/`, `txt-record=mail._domainkey.${domain},${record}`]),
    ].join('\n'),
  )
}

function writeMilters(folder: string, ports: Ports): void {
  writeFileSync(
    join(folder, 'resolver.conf'),
    `server:\n  do-not-query-localhost: no\n  module-config: "iterator"\nforward-zone:\n  name: "."\n  forward-addr: 127.0.0.1@${ports.dns}\n`,
  )
  writeFileSync(join(folder, 'nobody'), '192.0.2.1\n')
  const shared = [
    'Mode v',
    `AuthservID ${OUR_MX}`,
    'Background no',
    'Syslog no',
    `ResolverConfiguration ${join(folder, 'resolver.conf')}`,
    // Otherwise mails from loopback, such as these, are not checked.
    `InternalHosts ${join(folder, 'nobody')}`,
    `ExternalIgnoreList ${join(folder, 'nobody')}`,
  ]
  const outspoken = ['AlwaysAddARHeader yes', `Socket inet:${ports.outspokenMilter}@127.0.0.1`]
  writeFileSync(join(folder, 'outspoken.conf'), [...shared, ...outspoken].join('\n'))
  writeFileSync(join(folder, 'silent.conf'), [...shared, `Socket inet:${ports.silentMilter}@127.0.0.1`].join('\n'))
}

function writePostfix(
  folder: string,
  ports: Ports,
  relay: { readonly baseUrl: string; readonly secret: string },
): void {
  const config = join(folder, 'postfix')
  for (const name of ['postfix', 'spool', 'data']) mkdirSync(join(folder, name))
  const [user = 0, group = 0] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postfix'], { encoding: 'utf8' })),
  )
  chownSync(join(folder, 'data'), user, group)
  writeFileSync(join(config, 'transport'), 'bank@pay.example paygate:\n')
  const credentials = writeCredentials(folder, relay.secret)
  writeFileSync(
    join(config, 'main.cf'),
    [
      'compatibility_level = 3.6',
      `queue_directory = ${join(folder, 'spool')}`,
      `data_directory = ${join(folder, 'data')}`,
      `maillog_file = ${join(folder, 'mail.log')}`,
      `maillog_file_prefixes = ${folder}`,
      'inet_interfaces = 127.0.0.1',
      'inet_protocols = ipv4',
      `myhostname = ${OUR_MX}`,
      'mydestination =',
      'mynetworks = 192.0.2.0/24',
      'relay_domains = pay.example',
      'recipient_delimiter = +',
      `transport_maps = texthash:${join(config, 'transport')}`,
      'smtpd_relay_restrictions = reject_unauth_destination',
      'milter_default_action = tempfail',
      `export_environment = TZ MAIL_CONFIG LANG PATH=${process.env['PATH'] ?? ''} BILLING_BASE_URL=${relay.baseUrl} CREDENTIALS_DIRECTORY=${credentials}`,
    ].join('\n'),
  )
  const services = [
    'pickup unix n - n 60 1 pickup',
    'cleanup unix n - n - 0 cleanup',
    'qmgr unix n - n 300 1 qmgr',
    'rewrite unix - - n - - trivial-rewrite',
  ]
  const bounces = ['bounce', 'defer', 'trace'].map((name) => `${name} unix - - n - 0 bounce`)
  writeFileSync(
    join(config, 'master.cf'),
    [
      `127.0.0.1:${ports.outspoken} inet n - n - - smtpd -o smtpd_milters=inet:127.0.0.1:${ports.outspokenMilter}`,
      `127.0.0.1:${ports.silent} inet n - n - - smtpd -o smtpd_milters=inet:127.0.0.1:${ports.silentMilter}`,
      ...services,
      ...bounces,
      'error unix - - n - - error',
      'retry unix - - n - - error',
      'discard unix - - n - - discard',
      'proxymap unix - - n - - proxymap',
      'anvil unix - - n - 1 anvil',
      'flush unix n - n 1000? 0 flush',
      'showq unix n - n - - showq',
      'postlog unix-dgram n - n - 1 postlogd',
      `paygate unix - n n - 2 pipe flags=q user=nobody:nogroup argv=${RELAY} \${original_recipient}`,
    ].join('\n'),
  )
}

/** A folder that only the pipe's user can read. */
function writeCredentials(folder: string, secret: string): string {
  const credentials = join(folder, 'relay')
  const file = join(credentials, 'BILLING_RELAY_SECRET')
  const nobody = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))
  mkdirSync(credentials, { mode: 0o500 })
  writeFileSync(file, secret, { mode: 0o400 })
  for (const path of [credentials, file]) chownSync(path, nobody, 0)
  return credentials
}

async function untilUp(port: number): Promise<void> {
  const deadline = performance.now() + UP_MS
  while (!(await accepts(port))) {
    if (performance.now() > deadline) throw new Error(`nothing listens on port ${port}`)
    await delay(50)
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
