import { sha256Hex } from '#shared/crypto.ts'
import { readInstalled, writeInstalled } from './files.ts'
import { pending, unchanged, type PartState } from './step.ts'

/** The steps in which a service loads what was written for it. */
export type Loading = 'service' | 'proxy_service'

const FILE = '/etc/paygate/setup.json'
const WRITTEN = 'written'
const LOADED = 'loaded'

/** Remembers what leaves no other trace: a hash of the inputs with which a step was done, and whether a service loaded its newest files. */
export class SetupMemory {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Whether something was written for the service that it has not loaded. */
  mustLoad(service: Loading): boolean {
    return this.#read()[service] === WRITTEN
  }

  /** Remembers that the service must load what is written, even if this run fails before that. */
  writing(service: Loading, state: PartState): PartState {
    if (state.is !== 'pending') return state
    return pending(state.would, () => {
      this.#write(service, WRITTEN)
      return state.act()
    })
  }

  /** Remembers, once it has, that the service loaded everything. */
  loading(service: Loading, state: PartState): PartState {
    if (state.is !== 'pending') return state
    return pending(state.would, async () => {
      const detail = await state.act()
      this.#write(service, LOADED)
      return detail
    })
  }

  /** Skips work that an earlier run did with the same inputs. */
  once(
    name: string,
    inputs: unknown,
    would: string,
    act: () => Promise<string> | string,
    doneEarlier: string,
  ): PartState {
    const hash = sha256Hex(JSON.stringify(inputs))
    if (this.#read()[name] === hash) return unchanged(doneEarlier)
    return pending(would, async () => {
      const detail = await act()
      this.#write(name, hash)
      return detail
    })
  }

  #read(): Record<string, string> {
    return JSON.parse(readInstalled(this.#prefix, FILE) ?? '{}') as Record<string, string>
  }

  #write(name: string, value: string): void {
    const content = `${JSON.stringify({ ...this.#read(), [name]: value }, null, 2)}\n`
    writeInstalled(this.#prefix, { path: FILE, content, mode: 0o600 })
  }
}
