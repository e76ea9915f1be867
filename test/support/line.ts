import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { listen } from './http-server.ts'

/** What a proxy has to know of the protocol that it forwards. */
export interface Protocol {
  /** The length of the first packet, or null while it is not whole. */
  readonly packetLength: (bytes: Buffer) => number | null
  /** What a server says that serves nobody now. */
  readonly refusal: Buffer
  /** Whether it says so before the client has said anything. */
  readonly refusesAtOnce: boolean
}

/**
 * What happens to bytes, in either direction: they are late; a connection is cut before or inside a packet, counted from now; they come
 * in pieces; nothing passes for a time; open connections are cut and the next ones refused; or the server's next answer is lost, and
 * the client gets the refusal instead.
 */
export type LineFault =
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'cut'; readonly packet: number }
  | { readonly kind: 'cut inside'; readonly packet: number }
  | { readonly kind: 'split'; readonly pieces: number }
  | { readonly kind: 'freeze'; readonly ms: number }
  | { readonly kind: 'refuse'; readonly times: number }
  | { readonly kind: 'replace answer' }

/** A proxy on loopback in front of any server. */
export interface Line {
  readonly port: number
  /** How many packets and connections met a fault. */
  readonly struck: number
  /** Begins a fault in place of the one before; null lets everything pass. */
  begin(fault: LineFault | null): void
  close(): Promise<void>
}

export const HTTP: Protocol = {
  packetLength: (bytes) => bytes.length,
  refusal: Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'),
  refusesAtOnce: false,
}

export const SMTP: Protocol = {
  packetLength: (bytes) => bytes.indexOf('\n') + 1 || null,
  refusal: Buffer.from('421 4.3.2 Service not available\r\n'),
  refusesAtOnce: true,
}

/** An error of MySQL's protocol, as the answer to a command unless `sequence` says otherwise. */
export function errorPacket(errno: number, state: string, message: string, sequence = 1): Buffer {
  const body = Buffer.concat([Buffer.from([0xff, errno & 0xff, errno >> 8]), Buffer.from(`#${state}${message}`)])
  return Buffer.concat([Buffer.from([body.length, 0, 0, sequence]), body])
}

export const MYSQL: Protocol = {
  packetLength(bytes) {
    const length = bytes.length < 4 ? Infinity : 4 + bytes.readUIntLE(0, 3)
    return bytes.length < length ? null : length
  },
  // In place of the greeting, which has number 0.
  refusal: errorPacket(1040, '08004', 'Too many connections', 0),
  refusesAtOnce: true,
}

/** `target` is a port of loopback, or the path of a UNIX socket. */
export async function openLine(target: number | string, protocol: Protocol): Promise<Line> {
  const state: LineState = { fault: null, left: 0, thaw: Promise.resolve(), struck: 0, protocol }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    if (isRefused(state)) {
      refuse(client, protocol)
      return
    }
    const upstream = typeof target === 'number' ? createConnection(target, '127.0.0.1') : createConnection(target)
    const ends = [client, upstream]
    const cut = (): void => ends.forEach((socket) => void socket.destroy())
    for (const socket of ends) {
      sockets.add(socket)
      socket.setNoDelay(true).on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    // Whatever ends a direction ends the connection.
    void pump(state, client, upstream, 'to server').then(cut, cut)
    void pump(state, upstream, client, 'to client').then(cut, cut)
  })
  const port = await listen(server)
  return {
    port,
    get struck() {
      return state.struck
    },
    begin(fault) {
      state.fault = fault
      state.left = countOf(fault)
      if (fault?.kind === 'freeze') state.thaw = delay(fault.ms, undefined, { ref: false })
      if (fault?.kind === 'refuse') for (const socket of sockets) socket.destroy()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

interface LineState {
  fault: LineFault | null
  /** What the fault counts down. */
  left: number
  /** Resolves when a freeze is over. */
  thaw: Promise<unknown>
  struck: number
  readonly protocol: Protocol
}

function countOf(fault: LineFault | null): number {
  if (fault?.kind === 'refuse') return fault.times
  return fault && 'packet' in fault ? fault.packet : 0
}

function isRefused(state: LineState): boolean {
  if (state.fault?.kind !== 'refuse' || state.left === 0) return false
  state.left -= 1
  state.struck += 1
  return true
}

function refuse(client: Socket, { refusal, refusesAtOnce }: Protocol): void {
  client.on('error', () => undefined)
  if (refusesAtOnce) client.end(refusal)
  else client.once('data', () => client.end(refusal))
}

type Direction = 'to server' | 'to client'

async function pump(state: LineState, from: Socket, to: Socket, direction: Direction): Promise<void> {
  let waiting: Buffer = Buffer.alloc(0)
  for await (const chunk of from as AsyncIterable<Buffer>) {
    await hold(state)
    waiting = Buffer.concat([waiting, chunk])
    const { whole, isCut } = await wholePackets(state, waiting, to, direction)
    if (isCut) return
    await write(state, to, waiting.subarray(0, whole))
    waiting = waiting.subarray(whole)
  }
}

/** What arrives together is late together, as on a line that is long, not narrow. */
async function hold(state: LineState): Promise<void> {
  const { fault } = state
  if (fault?.kind !== 'delay' && fault?.kind !== 'freeze') return
  state.struck += 1
  await (fault.kind === 'delay' ? delay(fault.ms) : state.thaw)
}

/** The length of the packets that arrived whole; before the one at which the connection is cut, they are passed on here. */
async function wholePackets(
  state: LineState,
  bytes: Buffer,
  to: Socket,
  direction: Direction,
): Promise<{ whole: number; isCut: boolean }> {
  let whole = 0
  for (;;) {
    const rest = bytes.subarray(whole)
    const length = rest.length === 0 ? null : state.protocol.packetLength(rest)
    if (length === null) return { whole, isCut: false }
    const last = lastWords(state, rest.subarray(0, length), direction)
    if (last !== null) {
      state.struck += 1
      await sent(to, Buffer.concat([bytes.subarray(0, whole), last]))
      return { whole, isCut: true }
    }
    whole += length
  }
}

/** What the other end still gets instead of this packet, if the connection is cut here; null if it is not. */
function lastWords(state: LineState, packet: Buffer, direction: Direction): Buffer | null {
  const { fault, protocol } = state
  if (fault?.kind === 'replace answer') {
    if (direction === 'to server') return null
    state.fault = null
    return protocol.refusal
  }
  if (fault?.kind !== 'cut' && fault?.kind !== 'cut inside') return null
  state.left -= 1
  if (state.left !== 0) return null
  return fault.kind === 'cut' ? Buffer.alloc(0) : packet.subarray(0, Math.floor(packet.length / 2))
}

async function write(state: LineState, to: Socket, bytes: Buffer): Promise<void> {
  if (bytes.length === 0) return
  const pieces = state.fault?.kind === 'split' ? state.fault.pieces : 1
  if (pieces > 1) state.struck += 1
  const size = Math.ceil(bytes.length / pieces)
  for (let start = 0; start < bytes.length; start += size) {
    to.write(bytes.subarray(start, start + size))
    if (pieces > 1) await turn()
  }
}

/** Resolves when the system has the bytes, so that a cut does not take them back. */
function sent(to: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => to.write(bytes, () => resolve()))
}
