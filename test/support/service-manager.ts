import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { scratchFolder } from './scratch.ts'

/** A datagram socket like systemd's, in Python because Node does not support them. */
const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True:
    for line in s.recv(4096).decode().split('\\n'):
        if line: print(line, flush=True)
`

export interface ServiceManager {
  readonly socket: string
  readonly received: string[]
  /** Waits until systemd has received this. */
  until(assignment: string): Promise<void>
  stop(): Promise<void>
}

/** Receives what a daemon notifies systemd of, at the socket that `NOTIFY_SOCKET` names. */
export async function startServiceManager(): Promise<ServiceManager> {
  const socket = join(scratchFolder('notify'), 'socket')
  const child = spawn('python3', ['-c', LISTENER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  const received: string[] = []
  const heard = new Set<() => void>()
  createInterface(child.stdout).on('line', (line) => {
    received.push(line)
    for (const look of heard) look()
  })
  const until = (assignment: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!received.some((line) => line.startsWith(assignment))) return
        heard.delete(look)
        resolve()
      }
      heard.add(look)
      look()
    })
  await until('bound')
  return {
    socket,
    received,
    until,
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
