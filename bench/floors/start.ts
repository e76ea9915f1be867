import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import Koa from 'koa'
import { createConnection, type Connection } from 'mysql2/promise'

/** `node start.ts <command of the database server as JSON> <its socket>`: prints a line when server and HTTP answer. */
const [command, socketPath = ''] = process.argv.slice(2)
const [program = '', ...parameters] = JSON.parse(command ?? '') as string[]
const database = spawn(program, parameters, { stdio: 'ignore' })
const ended = once(database, 'exit')
process.on('SIGTERM', () => {
  database.kill()
  void ended.then(() => process.exit(0))
})

let connection: Connection | null = null
while (!connection) {
  connection = await createConnection({ socketPath, user: 'root' }).catch(() => null)
  if (!connection) await delay(5)
}
await connection.query('SELECT 1')
const koa = new Koa()
koa.use((http) => void (http.body = 'ready'))
const server = koa.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write('ready\n')
