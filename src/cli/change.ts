import { rehearsing, type Rehearsal } from '#context.ts'
import { askNote, goAhead, isTerminal } from './ask.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { bannersOf, type Session } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { wrapLines } from './wrap-lines.ts'

/**
 * Runs work that changes something. With `--dry-run`, every transaction is rolled back, and the changes (before → after) and events are
 * printed instead of the result.
 */
export async function changeIn(
  session: Session,
  { dryRun }: { readonly dryRun?: boolean },
  work: (session: Session) => Promise<void>,
): Promise<void> {
  if (dryRun !== true) return work(session)
  const ctx = rehearsing(session.ctx)
  await work({ ...session, ctx, out: mutedOutput(session.out) })
  const { rehearsal } = ctx
  const appIds = rehearsal.changes.map((change) => change.app_id)
  printRehearsal(session.out, rehearsal, await bannersOf(session.ctx, appIds))
}

/** The operator's answers to a change. */
export interface Consent {
  readonly note?: string
  readonly yes?: boolean
  readonly dryRun?: boolean
}

/**
 * Makes a change with the operator's note and, on a terminal, after a yes. On a terminal the note is asked for after a rehearsal
 * of the change, which throws if the change is not possible. In a script a missing note fails at once.
 */
export async function changeWithNote<T>(
  session: Session,
  { note: given, yes, dryRun }: Consent,
  question: string,
  change: (session: Session, note: string) => Promise<T>,
): Promise<T> {
  const isAsked = (given === undefined || given === '') && isTerminal()
  if (isAsked) await change({ ...session, ctx: rehearsing(session.ctx) }, 'a rehearsal')
  const note = await askNote(given)
  if (!dryRun) await goAhead(yes, question)
  return change(session, note)
}

/** What a decision would do: its answer, and its effects in sentences. */
interface Preview {
  /** Of the app that it concerns. */
  readonly banners: readonly string[]
  readonly answer: object
  readonly effects: readonly string[]
}

/** On a terminal, shows what a decision does. Returns the operator's note. With `--dry-run`, shows it anywhere and returns null. */
export async function agreeTo(
  { out }: Session,
  { note, yes, dryRun }: Consent,
  question: string,
  preview: () => Preview | Promise<Preview>,
): Promise<string | null> {
  if (dryRun || process.stdin.isTTY) {
    const would = await preview()
    if (dryRun) {
      printEffects(out, would)
      return null
    }
    for (const line of [...would.banners, ...would.effects.map((effect) => `- ${effect}`)]) out.hint(line)
  }
  const given = await askNote(note)
  await goAhead(yes, question)
  return given
}

/** In a script a decision without a note fails at once. On a terminal the note is asked for once the decision is known to be possible. */
export async function refuseWithoutNote({ note, dryRun }: Consent): Promise<void> {
  if (!isTerminal() && !dryRun) await askNote(note)
}

/** The answer of a dry run that is described in sentences. */
export function printEffects(out: Output, { banners, answer, effects }: Preview): void {
  out.result({ ...answer, dry_run: true, effects }, () => {
    for (const line of [...banners, 'without --dry-run, this happens:']) out.line(line)
    printWrapped(out, '- ', effects)
  })
}

/** Hides the results of a dry run: its ids and secrets were rolled back. */
function mutedOutput(out: Output): Output {
  const nothing = (): void => undefined
  return { ...out, result: nothing, table: nothing, line: nothing, lines: nothing, hint: nothing }
}

function printRehearsal(out: Output, { changes, events }: Rehearsal, banners: readonly string[]): void {
  out.result({ dry_run: true, changes, events }, () => {
    if (changes.length === 0 && events.length === 0) out.line('nothing would change')
    for (const line of banners) out.line(line)
    for (const { action, subject, before, after } of changes) {
      const fields = differences(before, after)
      const isSame = before !== null && after !== null && fields.length === 0
      out.line(isSame ? `${subject} would stay as it is (${action})` : `would change ${subject} (${action})`)
      printWrapped(out, '  ', fields)
    }
    for (const { event_type: type, data } of events) {
      out.line(`would send ${type}`)
      const fields = Object.entries(data).map(([field, value]) => `${field}: ${wordOf(value)}`)
      printWrapped(out, '  ', fields)
    }
  })
}

function printWrapped(out: Output, start: string, texts: readonly string[]): void {
  for (const text of texts) out.lines(wrapLines(`${start}${printable(text)}`, terminalWidth()))
}

function differences(before: object | null, after: object | null): string[] {
  const states = [before ?? {}, after ?? {}].map((state) => new Map<string, unknown>(Object.entries(state)))
  // A state after the change may have only what changed.
  return Object.keys(after ?? before ?? {}).flatMap((field) => {
    const [old, next] = states.map((state) => wordOf(state.get(field))) as [string, string]
    return old === next || field === 'updated_at' ? [] : [`${field}: ${old} → ${next}`]
  })
}

function wordOf(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
