import { AppError, type ErrorCode } from '#shared/errors.ts'

/** The command that lists the ids of a kind, for an id that was not found. */
const WHERE_TO_LOOK: Readonly<Record<string, string>> = {
  app: 'app list',
  plan: 'plan list <app>',
  price: 'plan show <app> <plan_id>',
  customer: 'customer list <app>',
  subscription: 'subscription list <app>',
  transaction: 'transaction list',
  event: 'webhook list <app>',
  reminder: 'reminders unconfirmed',
  receipt: 'receipts unconfirmed',
  'bank account': 'bank-account list',
  'bank mail': 'bank-mail list',
  operator: 'operator list',
  approval: 'approval list',
}
/** The operator said no, or left a question by Ctrl-C or Ctrl-D. */
const DECLINED = /^(?:Declined|ExitPrompt|AbortPrompt)Error$/
/** What the operator typed, and settings that are wrong. */
const USAGE = /^(?:Usage|Commander|Config)Error$/
const UNREACHABLE = /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT)$/
const LOST = /^(PROTOCOL_CONNECTION_LOST|ER_SERVER_SHUTDOWN|ER_CONNECTION_KILLED)$/
/** The driver's own errors of a connection that was closed before a statement; one of them has no code. */
const FOUND_CLOSED = /^(EPIPE|ECONNRESET)?$/
const DENIED = /^ER_(ACCESS_DENIED|DBACCESS_DENIED|BAD_DB)/
const OLD_SCHEMA = /^ER_(NO_SUCH_TABLE|BAD_FIELD_ERROR)$/

/** The API's code of an error, for scripts: wrong usage is an invalid request. */
export function codeOf(thrown: unknown): ErrorCode {
  if (thrown instanceof AppError) return thrown.code
  if (!(thrown instanceof Error)) return 'internal_error'
  if (USAGE.test(thrown.name) || DECLINED.test(thrown.name) || ofFile(thrown) !== null) return 'invalid_request'
  if (thrown.name === 'MailError') return 'provider_error'
  if (thrown.name === 'EndpointError') return 'service_unavailable'
  return ofDatabase(thrown) === null ? 'internal_error' : 'service_unavailable'
}

/** What went wrong and what to do next, in one line; one line for each invalid setting. */
export function explainError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  if (DECLINED.test(thrown.name)) return 'Cancelled, nothing changed'
  if (thrown.name === 'AppError') return withHint(thrown)
  if (thrown.name === 'MailError')
    return `the mail server did not accept it: ${thrown.message}; check BILLING_SMTP_URL and BILLING_MAIL_FROM`
  if (thrown.name === 'EndpointError') return `${thrown.message}; is the daemon up, and is the address right?`
  return ofDatabase(thrown) ?? ofFile(thrown) ?? thrown.message
}

function withHint(error: Error): string {
  const noun = /^([a-z ]+?)(?: "[^"]*"| (?:evt_)?\d+)? not found$/.exec(error.message)?.[1]
  const place = noun === undefined ? undefined : WHERE_TO_LOOK[noun]
  return place === undefined ? error.message : `${error.message}; see billing-cli ${place}`
}

interface DriverDetails {
  readonly code?: string
  readonly fatal?: boolean
  readonly address?: string
  readonly port?: number
}

function ofDatabase(error: Error): string | null {
  if (error.name === 'UnknownCommit')
    return `${error.message}, so the change may have been made: look before you run it again; is the server up?`
  const { code = '', fatal, address, port } = rootOf(error) as Error & DriverDetails
  if (UNREACHABLE.test(code) && isConnecting(error)) {
    const place = address === undefined ? '' : ` at ${address}${port === undefined ? '' : `:${port}`}`
    return `the database cannot be reached${place} (${code}): is the server up, and is BILLING_DATABASE_URL right?`
  }
  if (LOST.test(code) || (fatal === true && FOUND_CLOSED.test(code)))
    return `the connection to the database was lost${code && ` (${code})`}: is the server up?`
  if (DENIED.test(code))
    return `the database refused the connection (${code}): check user, password and name in BILLING_DATABASE_URL`
  if (OLD_SCHEMA.test(code)) return "the database's schema is not up to date: run billing-cli migrate"
  return null
}

const FAILED_CALLS: Readonly<Record<string, string>> = { open: 'opened', scandir: 'read', stat: 'read' }

/** A file or folder that the operator named, or one of the settings. */
function ofFile({ code, path, syscall }: NodeJS.ErrnoException): string | null {
  if (code === undefined || path === undefined || syscall === 'connect') return null
  return `${path} cannot be ${FAILED_CALLS[syscall ?? ''] ?? 'written'} (${code})`
}

/** A host name with several addresses fails with an error for each. */
function rootOf(error: Error): Error {
  return error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
}

/** Missing files have the same codes; only errors of sockets come from these calls. */
function isConnecting(error: Error): boolean {
  const { syscall } = rootOf(error) as NodeJS.ErrnoException
  return (
    syscall === 'connect' || syscall === 'getaddrinfo' || syscall === 'read' || error.message.startsWith('connect ')
  )
}
