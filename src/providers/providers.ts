import { bankTransfer } from './bank-transfer/bank-transfer.ts'
import { card } from './card/card.ts'
import { payos } from './payos/payos.ts'
import type { Provider, Sessions } from './provider.ts'
import { testMethod } from './test-method/test-method.ts'

/** Every payment method, in the order in which operators and sellers see them. */
const PROVIDERS = [card, payos, bankTransfer, testMethod] as const

/** The names of the payment methods. */
export type Method = (typeof PROVIDERS)[number]['method']
export const METHODS: readonly Method[] = PROVIDERS.map(({ method }) => method)

export function listProviders(): readonly Provider<Method>[] {
  return PROVIDERS
}

/** Whether the value names a payment method. */
export function isMethod(name: unknown): name is Method {
  return METHODS.some((method) => method === name)
}

/** The provider of a method. */
export function providerOf(method: Method): Provider<Method> {
  return requireProvider((provider) => provider.method === method, method)
}

/** The provider of a stored code; null for an unknown code. */
export function providerOfCode(code: string): Provider<Method> | null {
  return PROVIDERS.find((provider: Provider<Method>) => provider.code === code) ?? null
}

/** How the sessions of a stored code are polled and closed. Throws for an unknown code, whose sessions may still be paid. */
export function sessionsOf(code: string): Sessions {
  const sessions = providerOfCode(code)?.sessions
  if (!sessions) throw new Error(`no provider with sessions has the code ${code}`)
  return sessions
}

/** The provider that is paid on our own bank page. */
export function bankPageProvider(): Provider<Method> {
  return requireProvider(({ hasBankPage }) => hasBankPage === true, 'the bank page')
}

/** The provider that moves no money. */
export function sandboxProvider(): Provider<Method> {
  return requireProvider(({ isSandboxOnly }) => isSandboxOnly === true, 'sandbox apps')
}

function requireProvider(matches: (provider: Provider<Method>) => boolean, what: string): Provider<Method> {
  const provider = listProviders().find(matches)
  if (!provider) throw new Error(`no provider for ${what}`)
  return provider
}
