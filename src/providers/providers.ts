import type { ProviderCode } from '#transactions/store.ts'
import { bankTransfer } from './bank-transfer/bank-transfer.ts'
import { card } from './card/card.ts'
import { payos } from './payos/payos.ts'
import { METHODS, type Method, type Provider } from './provider.ts'
import { testMethod } from './test-method.ts'

/** Every way to pay, in the order in which payers see them. */
const PROVIDERS: readonly Provider[] = [card, payos, bankTransfer, testMethod]

/** Who opens sessions that can be looked up, by the code that is stored with them. */
const BY_CODE: Partial<Record<ProviderCode, Provider>> = { stripe: card, payos }

/** Whether the text names one of the four methods. */
export function isMethod(name: unknown): name is Method {
  return METHODS.some((method) => method === name)
}

export function listProviders(): readonly Provider[] {
  return PROVIDERS
}

/** The provider of a method that an app can have enabled. */
export function providerOf(method: Method): Provider {
  const provider = PROVIDERS.find((candidate) => candidate.method === method)
  if (!provider) throw new Error(`no provider takes ${method}`)
  return provider
}

/** The provider that opened a stored session; null for a code that opens none. */
export function providerOfCode(code: string): Provider | null {
  return BY_CODE[code as ProviderCode] ?? null
}
