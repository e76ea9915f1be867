import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { jsonCli } from './json-cli.ts'

/** The result of a command on a machine. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const BASES = join(import.meta.dirname, '../../var/trials')
/** The suites of Debian by its version. */
const SUITES = { 12: 'bookworm', 13: 'trixie' } as const
export type DebianVersion = keyof typeof SUITES
/** This machine's package sources. */
const SOURCES = ['etc/apt/sources.list', 'etc/apt/sources.list.d/debian.sources']
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** The path at which the machine sees the network of the package sources; its own network contains only the trial. */
const OUTSIDE = '/srv/outside'
const BOOT_MS = 60_000
const COMMAND_MS = 1_200_000

const baseOf = (version: DebianVersion): string => join(BASES, `debian-${version}`)

/** The smallest Debian that boots: only what systemd needs. Created once, and copied for each machine. */
export function prepareDebian(version: DebianVersion = 12): void {
  const base = baseOf(version)
  if (existsSync(base)) return
  const suite = SUITES[version]
  const unfinished = `${base}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  execFileSync('debootstrap', ['--variant=minbase', '--include=systemd-sysv,dbus', suite, unfinished], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (const file of SOURCES) {
    rmSync(join(unfinished, file), { force: true })
    if (!existsSync(`/${file}`)) continue
    const ofThisMachine = readFileSync(`/${file}`, 'utf8')
    writeFileSync(join(unfinished, file), ofThisMachine.replaceAll(/\b(bookworm|trixie)\b/g, suite))
  }
  renameSync(unfinished, base)
}

export interface MachineOptions {
  /** 12 by default. */
  readonly version?: DebianVersion
  readonly folder: string
  /** Its address; the trial's own is `gateway`. */
  readonly address: string
  readonly gateway: string
  /** Lines of its hosts file. */
  readonly hosts: readonly string[]
  /** A folder of the trial that the machine sees as `/srv/origin`. */
  readonly origin: string
  /** A process in the network of the package sources. */
  readonly outsidePid: number
}

/** A container with systemd as process 1 and its own file system, processes and network. */
export class Machine {
  readonly folder: string
  readonly address: string
  readonly cli = jsonCli((words) => this.run(`billing-cli ${words}`))
  readonly #options: MachineOptions
  #container: ChildProcess | null = null
  #leader = 0

  private constructor(options: MachineOptions) {
    this.folder = options.folder
    this.address = options.address
    this.#options = options
  }

  /** A machine with plain Debian, or a copy of one that is off. */
  static install(options: MachineOptions, from: Machine | null = null): Machine {
    // Node's copy loses file owners.
    execFileSync('cp', ['-a', '--reflink=auto', from?.folder ?? baseOf(options.version ?? 12), options.folder])
    const machine = new Machine(options)
    const hosts = ['127.0.0.1 localhost', ...options.hosts]
    writeFileSync(machine.path('/etc/hosts'), hosts.map((line) => `${line}\n`).join(''))
    // There is no name server: the hosts file has all names.
    writeFileSync(machine.path('/etc/resolv.conf'), 'nameserver 127.0.0.1\n')
    machine.#leadOut()
    return machine
  }

  /** The path of one of its files here. */
  path(file: string): string {
    return join(this.folder, file)
  }

  async boot(): Promise<void> {
    const { folder, origin, outsidePid, gateway, address } = this.#options
    this.#leader = 0
    this.#container = spawn(
      // It is removed with the trial.
      'setpriv',
      [
        ...['--pdeathsig', 'KILL', 'systemd-nspawn'],
        ...['--quiet', '--boot', '--register=no', '--keep-unit', '--private-network', '--resolv-conf=off'],
        ...['--timezone=off', `--machine=paygate-${address.replaceAll('.', '-')}`, `--directory=${folder}`],
        `--bind-ro=${origin}:/srv/origin`,
        `--bind=/proc/${outsidePid}/ns/net:${OUTSIDE}/net`,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const complaints = text(this.#container.stderr!)
    const exited = once(this.#container, 'exit').then(async () => {
      throw new Error(`the machine stopped at once: ${await complaints}`)
    })
    this.#leader = await Promise.race([this.#leaderOf(this.#container.pid!), exited])
    exited.catch(() => undefined)
    const link = `trial-${address.split('.').at(-1)}`
    const peer = ['peer', 'name', 'host0', 'netns', String(this.#leader)]
    execFileSync('ip', ['link', 'add', link, 'type', 'veth', ...peer])
    execFileSync('ip', ['addr', 'add', gateway, 'peer', address, 'dev', link])
    execFileSync('ip', ['link', 'set', link, 'up'])
    const net = ['--target', String(this.#leader), '--net', 'ip']
    execFileSync('nsenter', [...net, 'addr', 'add', address, 'peer', gateway, 'dev', 'host0'])
    execFileSync('nsenter', [...net, 'link', 'set', 'host0', 'up'])
    await this.#untilUp()
  }

  async #untilUp(): Promise<void> {
    const deadline = performance.now() + BOOT_MS
    for (;;) {
      const { stdout, stderr } = await this.try('systemctl is-system-running --wait')
      if (stdout.trim() === 'running') return
      if (performance.now() > deadline) {
        const failed = await this.try('systemctl --failed --no-pager; systemctl list-jobs --no-pager')
        throw new Error(`the machine is ${stdout.trim()}: ${stderr}\n${failed.stdout}`)
      }
      await delay(100)
    }
  }

  /** Runs a script as root, up to the first failing line; throws if it fails. */
  async run(script: string, options: { readonly input?: string } = {}): Promise<string> {
    const { code, stdout, stderr } = await this.try(script, options)
    if (code !== 0) throw new Error(`exit code ${code ?? 'none'} of:\n${script}\n${stdout}\n${stderr}`)
    return stdout
  }

  async try(script: string, { input = '' }: { readonly input?: string } = {}): Promise<Ran> {
    const environment = [`PATH=${PATH}`, 'HOME=/root', 'LANG=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive']
    const shell = ['env', '-i', '-C', '/root', ...environment, 'bash', '-eo', 'pipefail', '-c', script]
    const child = spawn('nsenter', [`--target=${this.#leader}`, '-m', '-u', '-i', '-p', '-n', '--', ...shell], {
      timeout: COMMAND_MS,
      stdio: 'pipe',
    })
    const exited = once(child, 'exit') as Promise<[number | null]>
    child.stdin.on('error', () => undefined).end(input)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exited])
    return { code, stdout, stderr }
  }

  /** Runs a program of the trial's own machine in its network. */
  fromInside(program: string, ...args: readonly string[]): string {
    return execFileSync('nsenter', [`--target=${this.#leader}`, '--net', program, ...args], { encoding: 'utf8' })
  }

  async powerOff(): Promise<void> {
    if (!this.#container || this.#container.exitCode !== null || this.#container.signalCode !== null) return
    const off = once(this.#container, 'exit')
    await this.try('systemctl poweroff')
    await off
  }

  /** Like a power cut. */
  async cutPower(): Promise<void> {
    if (!this.#container || this.#container.exitCode !== null || this.#container.signalCode !== null) return
    const off = once(this.#container, 'exit')
    // Without one the machine did not start; 0 would address the trial itself.
    if (this.#leader > 0) process.kill(this.#leader, 'SIGKILL')
    else this.#container.kill('SIGKILL')
    await off
  }

  /** The first process of the container, which systemd-nspawn starts last. */
  async #leaderOf(container: number): Promise<number> {
    const deadline = performance.now() + BOOT_MS
    for (;;) {
      const pid = Number(readFileSync(`/proc/${container}/task/${container}/children`, 'utf8').trim())
      if (pid > 0 && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'systemd') return pid
      if (performance.now() > deadline) throw new Error('the machine does not start')
      await delay(50)
    }
  }

  /** Programs that fetch packages use this machine's network; nothing else on the machine has one. */
  #leadOut(): void {
    mkdirSync(this.path(OUTSIDE), { recursive: true })
    writeFileSync(this.path(`${OUTSIDE}/net`), '')
    cpSync('/etc/resolv.conf', this.path(`${OUTSIDE}/resolv.conf`), { dereference: true })
    const settings = [`export npm_config_registry=${npmRegistry()}`]
    const authorities = process.env['NODE_EXTRA_CA_CERTS']
    if (authorities !== undefined) {
      cpSync(authorities, this.path(`${OUTSIDE}/ca.pem`), { dereference: true })
      settings.push(`export NODE_EXTRA_CA_CERTS=${OUTSIDE}/ca.pem npm_config_cafile=${OUTSIDE}/ca.pem`)
    }
    for (const program of ['apt-get', 'npm']) {
      const lines = [
        '#!/bin/sh',
        'set -eu',
        ...settings,
        `exec unshare --mount sh -c 'mount --bind ${OUTSIDE}/resolv.conf /etc/resolv.conf && exec nsenter --net=${OUTSIDE}/net "$@"' - /usr/bin/${program} "$@"`,
      ]
      writeFileSync(this.path(`/usr/local/sbin/${program}`), `${lines.join('\n')}\n`, { mode: 0o755 })
    }
  }
}

function npmRegistry(): string {
  return execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
}

/** Removes the machines, which must be off. */
export function removeMachines(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
