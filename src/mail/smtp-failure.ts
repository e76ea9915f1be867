import type { MailFailure } from './mail.ts'

/** An error as nodemailer makes it. */
export interface SmtpError {
  /** The address that was refused. */
  readonly recipient?: string
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  /** The error of each recipient, where every one was refused. */
  readonly rejectedErrors?: readonly SmtpError[]
}

/** How far a message came. */
export interface Progress {
  /** Why its sender stopped it; null if nobody did. */
  readonly refusal: Error | null
  /** The end of the message may have left, so that the server may have accepted it. */
  readonly isComplete: boolean
}

/** What an error of nodemailer says about a message. */
export function mailFailureOf(error: unknown, { refusal, isComplete }: Progress): MailFailure {
  const { code, responseCode } = error as SmtpError
  if (refusal) return 'refused'
  const wasAnswered = (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== undefined
  if (wasAnswered && responseCode === 421) return 'unreachable'
  if (wasAnswered) return failureOfRefused((error as SmtpError).rejectedErrors ?? [])
  if (isComplete) return 'unknown'
  return code === 'EENVELOPE' || code === 'EMESSAGE' ? 'refused' : 'unreachable'
}

/**
 * What it means that a server refused these recipients: `no_such_address` if each address is wrong. A server that refuses us (5.7.x, relaying
 * denied) or whose mailbox is full (5.2.2) may accept the mail later, even if its code is permanent.
 */
export function failureOfRefused(refused: readonly SmtpError[]): MailFailure {
  const areWrong = refused.length > 0 && refused.every(({ response = '' }) => isNoSuchAddress(response))
  return areWrong ? 'no_such_address' : 'refused'
}

function isNoSuchAddress(response: string): boolean {
  const [, code = '', enhanced] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\b)?/.exec(response) ?? []
  // RFC 3463: 5.1.x is about an address, 5.1.7 and 5.1.8 about the sender's; 5.2.1 is a disabled mailbox.
  return enhanced === undefined ? /^55[013]$/.test(code) : /^5\.(1\.(?!7$|8$)|2\.1$)/.test(enhanced)
}
