import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { findProgram } from '#embedded/setup.ts'
import type { Certificate } from '../support/certificates.ts'
import { scratchFolder } from '../support/scratch.ts'
import { freePort } from '../support/free-ports.ts'
import { until } from './cluster-trial.ts'
import { MYSQL_FOLDER } from './mysql-group-servers.ts'
import { launch, untilConnected } from './server-process.ts'

/** Router with fixed destinations, the first that can be reached. It ends TLS itself, so that it reads what passes. Returns its port. */
export async function startRouter(
  destinations: readonly string[],
  { key, cert }: Certificate,
  processes: ChildProcess[],
): Promise<number> {
  const port = await freePort()
  const folder = scratchFolder('router')
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  const settings = join(folder, 'router.conf')
  writeFileSync(
    settings,
    `[DEFAULT]
plugin_folder=${MYSQL_FOLDER}/usr/lib/mysqlrouter/plugin
runtime_folder=${folder}
data_folder=${folder}
[logger]
level=info
[routing:paygate]
bind_address=127.0.0.1
bind_port=${port}
destinations=${destinations.join()}
routing_strategy=first-available
protocol=classic
client_ssl_mode=PREFERRED
client_ssl_cert=${folder}/cert.pem
client_ssl_key=${folder}/key.pem
server_ssl_mode=PREFERRED
`,
  )
  const log = join(folder, 'log')
  processes.push(launch(join(MYSQL_FOLDER, 'bin', 'mysqlrouter'), ['-c', settings], log))
  await untilGreeted(port, log)
  return port
}

/** A member of a group as HAProxy sees it: on loopback, at `checkPort`, it is told over HTTP whether the member is the primary. */
export interface CheckedMember {
  readonly address: string
  readonly checkPort: number
}

/**
 * HAProxy in front of a MySQL group: the primary, whichever that is. Its own `mysql-check` speaks no way to log in that MySQL 9 has, and
 * does not ask for the role. Returns its port.
 */
export async function startHaproxy(members: readonly CheckedMember[], processes: ChildProcess[]): Promise<number> {
  const program = findProgram('haproxy')
  if (program === null) throw new Error('haproxy is missing: run bin/system-packages --trials')
  const port = await freePort()
  const folder = scratchFolder('haproxy')
  const settings = join(folder, 'haproxy.cfg')
  const lines = members.map(
    ({ address, checkPort }, index) =>
      `server m${index + 1} ${address} check addr 127.0.0.1 port ${checkPort} inter 1s`,
  )
  writeFileSync(
    settings,
    `defaults
  mode tcp
  timeout connect 3s
  timeout client 1h
  timeout server 1h
  timeout check 5s
listen mysql
  bind 127.0.0.1:${port}
  option httpchk
  default-server on-marked-down shutdown-sessions
  ${lines.join('\n  ')}
`,
  )
  const log = join(folder, 'log')
  processes.push(launch(program, ['-db', '-f', settings], log))
  // Until it has asked a member it takes it for up.
  await until('HAProxy knows the secondaries', () => timesDown(log) === members.length - 1)
  return port
}

function timesDown(log: string): number {
  return readFileSync(log, 'utf8').split(' is DOWN').length - 1
}

/** Waits until the proxy lets clients through to a server, which greets them first and then refuses this one. */
async function untilGreeted(port: number, log: string): Promise<void> {
  const greet = async () => {
    try {
      return await createConnection({ host: '127.0.0.1', port, user: 'nobody', ssl: { rejectUnauthorized: false } })
    } catch (error) {
      if ((error as { readonly code?: string }).code === 'ER_ACCESS_DENIED_ERROR') return null
      throw error
    }
  }
  await untilConnected(greet, log)
}
