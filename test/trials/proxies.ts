import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { findProgram } from '#embedded/setup.ts'
import type { Certificate } from '../support/certificates.ts'
import { freePort } from '../support/shell.ts'
import { MYSQL_FOLDER } from './mysql-group-servers.ts'
import { launch, untilConnected } from './server-process.ts'

/** Router with fixed destinations, the first that can be reached. It ends TLS itself, so that it reads what passes. Returns its port. */
export async function startRouter(
  root: string,
  destinations: readonly string[],
  { key, cert }: Certificate,
  processes: ChildProcess[],
): Promise<number> {
  const port = await freePort()
  const folder = mkdtempSync(join(root, 'router-'))
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

/** HAProxy in front of MySQL: the first member that is up. Needs a user `check` without a password. Returns its port. */
export async function startHaproxy(
  root: string,
  destinations: readonly string[],
  processes: ChildProcess[],
): Promise<number> {
  const program = findProgram('haproxy')
  if (program === null) throw new Error('haproxy is missing: run bin/system-packages --trials')
  const port = await freePort()
  const folder = mkdtempSync(join(root, 'haproxy-'))
  const settings = join(folder, 'haproxy.cfg')
  const members = destinations.map(
    (destination, index) => `server m${index + 1} ${destination} check inter 1s${index === 0 ? '' : ' backup'}`,
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
  option mysql-check user check
  ${members.join('\n  ')}
`,
  )
  const log = join(folder, 'log')
  processes.push(launch(program, ['-db', '-f', settings], log))
  await untilGreeted(port, log)
  return port
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
