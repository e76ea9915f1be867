import type { Argument, Command, Option } from 'commander'
import type { Context } from '#context.ts'
import type { App } from '#apps/store.ts'
import { formatId } from '#shared/ids.ts'
import { wordsOf } from './one-of.ts'
import { printable } from './printable.ts'
import { createProgram, leadingWord } from './program.ts'
import { SHELLS } from './shells.ts'

/** A word that may stand at the cursor, with its description. */
export interface Candidate {
  readonly value: string
  readonly description: string
}

/** The newest of a list: more than anybody would choose from. */
const NEWEST = { limit: '100' }
/**
 * Shells insert a candidate unquoted, and end users choose some of these texts. Only what a shell reads as a plain word is offered.
 */
const PLAIN = /^[A-Za-z0-9-][A-Za-z0-9._+-]*$/

/**
 * Candidates for the last of `words`, which is being typed: commands, options, and their values, including those in the database (apps, and
 * the newest ids). Empty if any text may stand.
 */
export async function candidatesFor(words: readonly string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  const place = placeOf(await createProgram(leadingWord(words.slice(0, -1))), words.slice(0, -1))
  const offered = typed.startsWith('-') && !place.option ? optionsOf(place) : await valuesAt(place)
  return offered.filter(({ value }) => value.startsWith(typed) && PLAIN.test(value))
}

/** A parsed command line: the command, its arguments so far, and the option whose value comes next. */
interface Place {
  readonly command: Command
  readonly given: readonly string[]
  readonly option: Option | null
}

function placeOf(program: Command, words: readonly string[]): Place {
  let command = program
  let option: Option | null = null
  const given: string[] = []
  for (const [index, word] of words.entries()) {
    if (option) option = null
    else if (word.startsWith('-'))
      option = allOptions(command).find((each) => each.long === word && takesValue(each)) ?? null
    else if (word !== 'help' || index > 0) {
      const child: Command | undefined =
        given.length === 0 ? command.commands.find((each) => each.name() === word) : undefined
      if (child) command = child
      else given.push(word)
    }
  }
  return { command, given, option }
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional
}

function allOptions(command: Command): Option[] {
  return [...command.options, ...(command.parent ? allOptions(command.parent) : [])]
}

function optionsOf({ command }: Place): Candidate[] {
  const own = allOptions(command).map(({ long, description }) => ({ value: long ?? '', description }))
  return [...own, { value: '--help', description: 'explain the command' }]
}

async function valuesAt({ command, given, option }: Place): Promise<Candidate[]> {
  if (option) return valuesOf(command, nameOf(option), wordsOf(option.parseArg), given)
  if (command.commands.length > 0) {
    const commands = command.commands.map((child) => ({ value: child.name(), description: child.description() }))
    return given.length > 0
      ? []
      : [...commands, ...(command.parent ? [] : [{ value: 'help', description: 'explain a command' }])]
  }
  const argument: Argument | undefined = command.registeredArguments[given.length]
  return argument ? valuesOf(command, argument.name(), [], given) : []
}

/** The name of the option's value: `app` of `--app <app>`, and of `--failed <app>`. */
function nameOf({ flags }: Option): string {
  return /[<[](\w+)/.exec(flags)?.[1] ?? ''
}

async function valuesOf(
  command: Command,
  name: string,
  words: readonly string[],
  given: readonly string[],
): Promise<Candidate[]> {
  if (words.length > 0) return words.map((value) => candidate(value))
  const group = command.parent?.name() ?? ''
  const read = READERS[name === 'id' ? group : name]
  if (!read) return []
  if (!read.isOfDatabase) return read.list()
  const [{ loadConfig }, { openContext }] = await Promise.all([import('#config/config.ts'), import('#open-context.ts')])
  const { ctx, close } = await openContext({
    config: { ...loadConfig(), logLevel: 'silent' },
    thread: 'cli',
    poolSize: 1,
  })
  try {
    const found = await read.list(ctx, given)
    // A value that would control the terminal cannot be completed: escaped, it would be a different value.
    return found
      .filter(({ value }) => printable(value) === value)
      .map(({ value, description }) => ({ value, description: printable(description) }))
  } finally {
    await close()
  }
}

function candidate(value: string | number, description = ''): Candidate {
  return { value: String(value), description }
}

type Reader =
  | { readonly isOfDatabase: false; readonly list: () => Promise<Candidate[]> }
  | { readonly isOfDatabase: true; readonly list: (ctx: Context, given: readonly string[]) => Promise<Candidate[]> }

const stored = (list: (ctx: Context, given: readonly string[]) => Promise<Candidate[]>): Reader => ({
  isOfDatabase: true,
  list,
})
const fixed = (list: () => readonly string[] | Promise<readonly string[]>): Reader => ({
  isOfDatabase: false,
  list: async () => (await list()).map((value) => candidate(value)),
})
/** Reads what belongs to the app that the first argument names. */
const ofApp = (list: (ctx: Context, app: App, given: readonly string[]) => Promise<Candidate[]>): Reader =>
  stored(async (ctx, given) => {
    const { appNamed } = await import('#apps/find-app.ts')
    return list(ctx, await appNamed(ctx, given[0] ?? ''), given)
  })

const transactions = stored(async (ctx) => {
  const { listTransactions } = await import('#transactions/list-transactions.ts')
  const { rows } = await listTransactions(ctx, null, NEWEST)
  return rows.map(({ id, externalRef, status }) => candidate(id, `${externalRef}, ${status}`))
})
const payments = stored(async (ctx) => {
  const { listPayments } = await import('#payments/list-payments.ts')
  const { rows } = await listPayments(ctx, { appId: null, waiting: false }, NEWEST)
  return rows.map(({ id, externalRef }) => candidate(id, externalRef ?? ''))
})

/** Readers by the name of the argument or option; for `id`, by the command's group. */
const READERS: Readonly<Record<string, Reader>> = {
  app: stored(async (ctx) => {
    const { listApps } = await import('#apps/store.ts')
    return (await listApps(ctx.db)).map(({ id, name }) => candidate(id, name))
  }),
  plan_id: ofApp(async (ctx, { id: appId }) => {
    const { listPlansOf } = await import('#plans/list-plans.ts')
    return (await listPlansOf(ctx, appId, {})).map(({ id, name }) => candidate(formatId('plan', id), name))
  }),
  price_id: ofApp(async (ctx, { id: appId }) => {
    const { listPlansOf } = await import('#plans/list-plans.ts')
    const plans = await listPlansOf(ctx, appId, {})
    return plans.flatMap(({ name, prices }) => prices.map(({ id }) => candidate(formatId('price', id), name)))
  }),
  promotion: ofApp(async (ctx, { id: appId }) => {
    const { listPromotions } = await import('#promotions/list-promotions.ts')
    const { rows } = await listPromotions(ctx, appId, NEWEST)
    return rows.map(({ code, status }) => candidate(code, status))
  }),
  customer_id: ofApp(async (ctx, { id: appId }) => {
    const { listCustomers } = await import('#customers/list-customers.ts')
    const { rows } = await listCustomers(ctx, appId, NEWEST)
    return rows.map(({ id, email }) => candidate(formatId('cus', id), email))
  }),
  external_ref: ofApp(async (ctx, { id: appId }) => {
    const { listTransactions } = await import('#transactions/list-transactions.ts')
    const { rows } = await listTransactions(ctx, appId, NEWEST)
    return [...new Set(rows.map(({ externalRef }) => externalRef))].map((ref) => candidate(ref))
  }),
  transaction: transactions,
  transaction_id: transactions,
  payment: payments,
  payment_id: payments,
  'bank-account': stored(async (ctx) => {
    const { listBankAccounts } = await import('#bank-accounts/store.ts')
    return (await listBankAccounts(ctx.db)).map(({ id, bank, holder }) => candidate(id, `${bank}, ${holder}`))
  }),
  'bank-mail': stored(async (ctx) => {
    const { listBankMails } = await import('#bank-mail/list-bank-mails.ts')
    const { rows } = await listBankMails(ctx, { unmatched: true })
    return rows.map(({ id, bank, status }) => candidate(id, `${bank ?? 'unknown bank'}, ${status}`))
  }),
  reminders: stored(async (ctx) => {
    const { unconfirmedReminders } = await import('#mails/mail-lists.ts')
    const { rows } = await unconfirmedReminders.page(ctx, NEWEST)
    return rows.map((row) => candidate(row.reminder_id, row.external_ref))
  }),
  receipts: stored(async (ctx) => {
    const { unconfirmedReceipts } = await import('#mails/mail-lists.ts')
    const { rows } = await unconfirmedReceipts.page(ctx, NEWEST)
    return rows.map((row) => candidate(row.receipt_id, row.external_ref))
  }),
  event_id: stored(async (ctx) => {
    const { listNewestEvents } = await import('#webhooks/store.ts')
    const events = await listNewestEvents(ctx.db, Number(NEWEST.limit))
    return events.map(({ id, eventType, externalRef }) =>
      candidate(formatId('evt', id), externalRef === null ? eventType : `${eventType}, ${externalRef}`),
    )
  }),
  method: fixed(async () => (await import('#providers/providers.ts')).METHODS),
  on_or_off: fixed(() => ['on', 'off']),
  shell: fixed(() => SHELLS),
}
