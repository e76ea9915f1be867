/** Who has a command performed. The audit log names the caller, whoever it is. */
export interface Caller {
  readonly kind: 'operator' | 'server' | 'end_user' | 'payer' | 'provider' | 'job'
  /** An operator's login name, as it stands in the audit log; otherwise what tells this caller from others of its kind. */
  readonly name: string
}

/** An operator at the command line: `linh`, or `linh (sudo)`. */
export function operator(login: string): Caller {
  return { kind: 'operator', name: login }
}

/** A job of the daemon: `reminders`. */
export function job(name: string): Caller {
  return { kind: 'job', name }
}

/** Whoever proved that money moved: a provider's notification, its answer to a look-up, a bank's mail. */
export function provider(code: string): Caller {
  return { kind: 'provider', name: code }
}

/** Somebody who holds the link to a hosted page. */
export const payer: Caller = { kind: 'payer', name: 'page' }

/** The caller in the audit log: an operator's login name as it is, others with their kind: `end user u-42`, `job reminders`. */
export function auditName({ kind, name }: Caller): string {
  return kind === 'operator' ? name : `${kind.replace('_', ' ')} ${name}`
}
