import type { Suggestion } from '#bank-mail/suggest-transactions.ts'
import type { ReviewItem } from '#review/read-review.ts'
import { moneyCell } from '#cli/cells.ts'
import type { Commands } from '#cli/declaration.ts'
import { explainError } from '#cli/explain-error.ts'
import type { Session } from '#cli/session.ts'
import { keepOutput } from './kept-output.ts'

/** A case with what an operator needs to decide it. */
export interface Case {
  readonly item: ReviewItem
  /** Payments that unmatched money may be meant for, the most likely first. */
  readonly suggestions: readonly Suggestion[]
  /** The case's timeline, and the person. */
  readonly lines: readonly string[]
}

type Part = readonly [load: () => Promise<{ readonly commands: Commands }>, line: string, argument: string]

/** Reads what the commands of the command line show about a case. */
export async function openCase(session: Session, item: ReviewItem, columns: number): Promise<Case> {
  const suggestions = await suggestionsFor(session, item)
  const lines: string[] = []
  for (const part of partsOf(item)) lines.push(...(await linesOf(session, item, part, columns)), '')
  const person = await personOf(session, item, suggestions[0] ?? null)
  if (person) lines.push(...(await linesOf(session, item, person, columns)))
  return { item, suggestions, lines }
}

/** `₫99,000 due of user-lan, transaction 17, opened 2026-11-23 08:10` */
export function suggestionWords({ transaction_id: id, external_ref, amount_due, created_at }: Suggestion): string {
  return `${moneyCell(amount_due, 'VND')} due of ${external_ref}, transaction ${id}, opened ${created_at.slice(0, 16)}`
}

async function suggestionsFor({ ctx }: Session, { kind, id }: ReviewItem): Promise<readonly Suggestion[]> {
  const { listMailsWithSuggestions } = await import('#bank-mail/list-bank-mails.ts')
  const { suggestionsForPayment } = await import('#bank-mail/suggest-transactions.ts')
  if (kind === 'unmatched_bank_mail') return (await listMailsWithSuggestions(ctx, [Number(id)]))[0]?.suggestions ?? []
  return kind === 'unapplied_payment' ? suggestionsForPayment(ctx, Number(id)) : []
}

const transactions = () => import('#cli/transaction-commands.ts')
const payments = () => import('#cli/payment-commands.ts')
const webhooks = () => import('#cli/webhook-commands.ts')
const methods = () => import('#cli/method-commands.ts')
const search = () => import('#cli/find-commands.ts')

function partsOf({ kind, id, app_id }: ReviewItem): Part[] {
  switch (kind) {
    case 'flagged_payment':
      return [[transactions, 'transaction show [id]', String(id)]]
    case 'unapplied_payment':
      return [[payments, 'payment show [payment_id]', String(id)]]
    case 'failed_webhook':
      return [[webhooks, 'webhook show [event_id]', String(id)]]
    case 'paused_account':
      return [[methods, 'method list [app]', String(app_id)]]
    case 'unmatched_bank_mail':
    case 'unreadable_bank_mail':
    case 'unconfirmed_mail':
    case 'refused_address':
      return []
  }
}

/** The screen about the end user: the one that the case names, or the likely owner of the money. */
async function personOf({ ctx }: Session, item: ReviewItem, best: Suggestion | null): Promise<Part | null> {
  if (best) return [search, 'find [text]', best.external_ref]
  const { personIn } = await import('#review/person-in.ts')
  const text = await personIn(ctx, item)
  return text === null ? null : [search, 'find [text]', text]
}

async function linesOf(session: Session, item: ReviewItem, part: Part, columns: number): Promise<string[]> {
  const [load, line, argument] = part
  const kept = keepOutput(columns)
  try {
    const declared = (await load()).commands[line]
    const app = line.startsWith('find') && item.app_id !== null ? { app: String(item.app_id) } : {}
    if (declared && 'run' in declared) await declared.run({ ...session, out: kept.out }, [argument], app)
    return kept.lines()
  } catch (error) {
    return [`${line.split(' [')[0] ?? ''}: ${explainError(error)}`]
  }
}
