import { cliSecret } from '#config/environment.ts'
import { AppError } from '#shared/errors.ts'
import { isTerminal } from './ask.ts'
import { codeOf, explainError } from './explain-error.ts'
import { UsageError } from './usage-error.ts'

/** What errors of the service's own database name. */
const SETTING = 'BILLING_DATABASE_URL'
const VARIABLE = 'BILLING_CLI_DATABASE_PASSWORD'

/**
 * Works on the database at the address that `option` gave; errors name that option. A password that the address lacks comes from the
 * environment or, once the server wants one, from a prompt.
 */
export async function withPassword<T>(option: string, address: string, work: (url: string) => Promise<T>): Promise<T> {
  if (!URL.canParse(address)) throw new UsageError(`${option} must be the address of a database, such as mysql://…`)
  try {
    return await workWithPassword(address, work)
  } catch (error) {
    const text = explainError(error)
    if (!text.includes(SETTING)) throw error
    const code = codeOf(error)
    throw new AppError(code === 'internal_error' ? 'invalid_request' : code, text.replace(SETTING, option), {
      cause: error,
    })
  }
}

async function workWithPassword<T>(address: string, work: (url: string) => Promise<T>): Promise<T> {
  const url = URL.parse(address)
  const given = cliSecret(VARIABLE)
  if (!url || url.password !== '') return work(address)
  if (given !== undefined) return work(addressWith(url, given))
  try {
    return await work(address)
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ER_ACCESS_DENIED_ERROR' || !isTerminal()) throw error
    const { requiredSecret } = await import('./ask.ts')
    return work(addressWith(url, await requiredSecret(VARIABLE, undefined, `Password of ${url.username}:`)))
  }
}

function addressWith(url: URL, password: string): string {
  const complete = new URL(url)
  complete.password = encodeURIComponent(password)
  return complete.href
}
