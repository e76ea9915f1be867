import { truncate } from '#shared/truncate.ts'

/** Who asked for a command. The audit log names every caller. */
export interface Caller {
  readonly kind: 'operator' | 'server' | 'end_user' | 'payer' | 'provider' | 'job'
  /** An operator's login name as the audit log shows it; otherwise an identifier within the kind. */
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

/** The source that reported money: a provider's notification, its answer to a status poll, a bank's mail. */
export function provider(code: string): Caller {
  return { kind: 'provider', name: code }
}

/** Anybody with the link to a hosted page. */
export const payer: Caller = { kind: 'payer', name: 'page' }

/** The length of the columns for it. */
const MAX_AUDIT_NAME = 191

/** The caller as the audit log shows it: an operator by login name, others by kind and name: `end user u-42`, `job reminders`. */
export function auditName({ kind, name }: Caller): string {
  return truncate(kind === 'operator' ? name : `${kind.replace('_', ' ')} ${name}`, MAX_AUDIT_NAME)
}
