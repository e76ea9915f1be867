import type { Match } from './find.ts'

/** The command that shows more of a match. */
export function moreOf({ kind, id, app_id: app }: Match): string | null {
  switch (kind) {
    case 'transaction':
    case 'payment':
      return `${kind} show ${id}`
    case 'customer':
    case 'plan':
      return `${kind} show ${app ?? ''} ${id}`
    case 'app':
      return `app show ${id}`
    case 'bank mail':
      return 'bank-mail list'
    case 'event':
      return `webhook show ${id}`
    case 'price':
    case 'checkout':
    case 'end user':
      return null
  }
}
