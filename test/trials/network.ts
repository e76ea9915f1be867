import { execFileSync } from 'node:child_process'

/** The machines of a trial, as network namespaces of this one behind a bridge; or, where those are not allowed, this machine itself. */
export class Network {
  readonly #name: string
  readonly #size: number
  /** Whether each machine has a network of its own, which can be cut. */
  readonly canCut: boolean

  private constructor(name: string, size: number, canCut: boolean) {
    this.#name = name
    this.#size = size
    this.canCut = canCut
  }

  static open(size: number): Network {
    const network = new Network(`pg${process.pid.toString(36)}`, size, true)
    try {
      network.#make()
      return network
    } catch {
      network.close()
      return new Network('', size, false)
    }
  }

  addressOf(number: number): string {
    // A block for documentation, which no machine of this network has.
    return this.canCut ? `198.51.100.${number + 1}` : '127.0.0.1'
  }

  /** The command that runs a program on a machine. */
  on(number: number, program: string): readonly [program: string, ...options: string[]] {
    return this.canCut ? ['ip', 'netns', 'exec', this.#machine(number), program] : [program]
  }

  /** Cuts a machine off from the other machines, not from this one. */
  cut(number: number): void {
    for (const other of this.#others(number)) this.#route(number, 'add', other)
  }

  heal(number: number): void {
    for (const other of this.#others(number)) this.#route(number, 'del', other)
  }

  close(): void {
    for (let number = 0; number < this.#size; number += 1) attempt('netns', 'del', this.#machine(number))
    attempt('link', 'del', this.#name)
  }

  #make(): void {
    ip('link', 'add', this.#name, 'type', 'bridge')
    ip('address', 'add', '198.51.100.254/24', 'dev', this.#name)
    ip('link', 'set', this.#name, 'up')
    for (let number = 0; number < this.#size; number += 1) this.#plugIn(number)
  }

  #plugIn(number: number): void {
    const machine = this.#machine(number)
    ip('netns', 'add', machine)
    ip('link', 'add', machine, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', machine)
    ip('link', 'set', machine, 'master', this.#name, 'up')
    ip('-n', machine, 'address', 'add', `${this.addressOf(number)}/24`, 'dev', 'eth0')
    for (const device of ['eth0', 'lo']) ip('-n', machine, 'link', 'set', device, 'up')
  }

  #route(number: number, change: 'add' | 'del', other: number): void {
    ip('-n', this.#machine(number), 'route', change, 'blackhole', this.addressOf(other))
  }

  #others(number: number): number[] {
    return Array.from({ length: this.#size }, (_, other) => other).filter((other) => other !== number)
  }

  #machine(number: number): string {
    return `${this.#name}-${number}`
  }
}

function ip(...options: readonly string[]): void {
  execFileSync('ip', options, { stdio: 'ignore' })
}

function attempt(...options: readonly string[]): void {
  try {
    ip(...options)
  } catch {
    // It was not made.
  }
}
