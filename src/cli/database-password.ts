import { cliSecret } from '#config.ts'
import { isTerminal } from './ask.ts'

const VARIABLE = 'BILLING_CLI_DATABASE_PASSWORD'

/**
 * Works on the database at the address. A password that the address lacks comes from the environment or, once the server wants one, from a
 * prompt.
 */
export async function withPassword<T>(address: string, work: (url: string) => Promise<T>): Promise<T> {
  const url = URL.parse(address)
  const given = cliSecret(VARIABLE)
  if (!url || url.password !== '') return work(address)
  if (given !== undefined) return work(withIn(url, given))
  try {
    return await work(address)
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ER_ACCESS_DENIED_ERROR' || !isTerminal()) throw error
    const { requiredSecret } = await import('./ask.ts')
    return work(withIn(url, await requiredSecret(VARIABLE, undefined, `Password of ${url.username}:`)))
  }
}

function withIn(url: URL, password: string): string {
  const complete = new URL(url)
  complete.password = encodeURIComponent(password)
  return complete.href
}
