import { printable } from './printable.ts'
import type { Command } from 'commander'
import type { BankAccount } from '#bank-accounts/store.ts'
import type { ListedMail } from '#bank-mail/list-bank-mails.ts'
import type { MatchedMail } from '#bank-mail/match-bank-mail.ts'
import { askNote, goAhead, isTerminal, required, requiredChoice } from './ask.ts'
import { appCell, minuteCell, moneyCell, stateCell } from './cells.ts'
import { inChange, printEffects, withDryRun } from './change.ts'
import { Coloured } from './coloured.ts'
import { withExamples } from './examples.ts'
import { numberOf } from './number-of.ts'
import { gatherRows, readLimit, type PageOptions } from './pages.ts'
import { banner, inSession, performAs, withSandbox, type Session } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { wrap } from './wrap.ts'

/** `bank-account …` and `bank-mail …`: where customers transfer to, and what the banks write about it. */
export function registerBankCommands(program: Command): void {
  const account = program.command('bank-account').description('accounts that customers transfer to')
  registerAdd(account)
  registerList(account)
  registerUpdate(account)
  registerDisable(account)
  registerAssign(account)
  const mail = program.command('bank-mail').description('what banks wrote about incoming money')
  registerMails(mail)
  registerForwarding(mail)
  registerMatch(mail)
  registerClose(mail)
}

interface AddOptions {
  readonly bank?: string
  readonly number?: string
  readonly holder?: string
  readonly mailbox?: string
}

function registerAdd(account: Command): void {
  const add = account
    .command('add')
    .description('add an account; have the bank forward its mails to the forward address')
    .option('--bank <bank>', 'short code (VCB), BIN or name of a bank of the VietQR list')
    .option('--number <number>', "the account's number")
    .option('--holder <name>', "the holder's name, as the bank writes it")
    .option('--mailbox <address>', 'the address that the bank writes to; mails to any other are ignored')
    .action(async (options: AddOptions, command: Command) => {
      await inChange(command, async (session) => {
        const { addBankAccount } = await import('#bank-accounts/add-bank-account.ts')
        const input = {
          bank: await required(options.bank, '--bank', 'Bank (short code, BIN or name):'),
          number: await required(options.number, '--number', 'Account number:'),
          holder: await required(options.holder, '--holder', 'Account holder:'),
          mailbox: options.mailbox,
        }
        await printAccount(session, await performAs(session, addBankAccount, input, {}))
      })
    })
  withDryRun(add)
  withExamples(add, 'bank-account add --bank ACB --number 12345678 --holder "NGUYEN VAN AN"')
}

function registerList(account: Command): void {
  const list = account
    .command('list')
    .description('all accounts, disabled ones too')
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const [{ listBankAccounts }, { presentBankAccount }] = await Promise.all([
          import('#bank-accounts/list-bank-accounts.ts'),
          import('#bank-accounts/present-bank-account.ts'),
        ])
        const shown = (await listBankAccounts(ctx)).map((row) => presentBankAccount(row, ctx.config))
        out.result(shown, () => {
          const rows = shown.map((row) => [
            row.bank_account_id,
            row.bank,
            row.account_number,
            row.account_holder,
            row.forward_address ?? row.forward_code,
            row.mailbox,
            row.disabled,
          ])
          out.table({
            head: ['id', 'bank', 'number', 'holder', 'forward to', 'mailbox', 'disabled'],
            rows,
            none: 'No accounts yet: billing-cli bank-account add',
          })
        })
      })
    })
  withExamples(list, 'bank-account list', 'bank-account list --json')
}

interface UpdateOptions {
  readonly mailbox?: string
}

function registerUpdate(account: Command): void {
  const update = account
    .command('update [id]')
    .description('change the mailbox that the bank writes to; an empty value accepts mails to any mailbox')
    .option('--mailbox <address>', 'the address that the bank writes to, or "" for any')
    .action(async (id: string | undefined, options: UpdateOptions, command: Command) => {
      await inChange(command, async (session) => {
        const { updateBankAccount } = await import('#bank-accounts/update-bank-account.ts')
        const accountId = await pickAccount(session, id)
        // Empty is an answer of its own here.
        const mailbox = options.mailbox ?? (await required(undefined, '--mailbox', 'Address that the bank writes to:'))
        await printAccount(session, await performAs(session, updateBankAccount, { mailbox }, { accountId }))
      })
    })
  withDryRun(update)
  withExamples(update, 'bank-account update 1 --mailbox seller@example.com', 'bank-account update 1 --mailbox ""')
}

function registerDisable(account: Command): void {
  const disable = account
    .command('disable [id]')
    .description('stop using an account: its mails are ignored, and its apps stop offering bank transfer')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: { yes?: boolean; dryRun?: boolean }, command: Command) => {
      await inChange(command, async (session) => {
        const { disableBankAccount } = await import('#bank-accounts/disable-bank-account.ts')
        const accountId = await pickAccount(session, id)
        await goAhead(options.yes ?? options.dryRun, `Disable bank account ${accountId} for good?`)
        await printAccount(session, await performAs(session, disableBankAccount, undefined, { accountId }))
      })
    })
  withDryRun(disable)
  withExamples(disable, 'bank-account disable 1')
}

function registerAssign(account: Command): void {
  const assign = account
    .command('assign [app] [id]')
    .description("have the app's customers transfer to this account from now on")
    .action(async (named: string | undefined, id: string | undefined, _options: object, command: Command) => {
      await inChange(command, async (session) => {
        const { assignBankAccount } = await import('#bank-accounts/assign-bank-account.ts')
        const app = await session.app(named)
        const accountId = await pickAccount(session, id)
        const assigned = await performAs(session, assignBankAccount, undefined, { app, accountId })
        await printAccount(session, assigned, banner(app))
      })
    })
  withDryRun(assign)
  withExamples(assign, 'bank-account assign 1 1')
}

function registerMails(mail: Command): void {
  const list = mail
    .command('list')
    .description('mails of the relay, newest first, without what payers wrote')
    .option('--unmatched', 'only those that need review, with suggestions')
    .option('--limit <n>', 'how many at most; 200, with --unmatched all')
    .option('--cursor <cursor>', 'continue an earlier list: the cursor at its end')
    .action(async (options: PageOptions & { unmatched?: boolean }, command: Command) => {
      const unmatched = options.unmatched === true
      const limit = options.limit === undefined ? (unmatched ? Infinity : 200) : readLimit(options.limit)
      await inSession(command, async ({ ctx, out }) => {
        const [{ listBankMails }, { fitOf }] = await Promise.all([
          import('#bank-mail/list-bank-mails.ts'),
          import('#bank-mail/fits.ts'),
        ])
        const found = await gatherRows(out, limit, options, (page) => listBankMails(ctx, { unmatched }, page))
        const mails = await withSandbox(ctx, found)
        out.result(mails, () => {
          const rows = mails.map((row) => [
            row.id,
            minuteCell(row.received_at),
            appCell(row),
            row.bank,
            row.amount === null ? null : moneyCell(row.amount, 'VND'),
            stateCell(row.reason ?? row.status),
            row.review === null ? null : new Coloured(REVIEWS[row.review], 'red'),
            row.transaction_id,
          ])
          out.table({
            head: ['id', 'received (UTC)', 'app', 'bank', 'amount', 'outcome', 'needs review', 'for'],
            rows,
            none: unmatched ? 'No money waits for a match.' : 'no mails',
            codes: ['outcome'],
            right: ['id', 'amount', 'for'],
          })
          for (const fit of mails.map((mail) => fitOf(mail)).filter((one) => one !== null))
            out.lines(wrap(`${printable(fit.what)}: ${fit.command}`, terminalWidth()))
        })
      })
    })
  withExamples(list, 'bank-mail list', 'bank-mail list --unmatched')
}

/** Why a mail needs review. */
const REVIEWS: Readonly<Record<NonNullable<ListedMail['review']>, string>> = {
  credit: 'money',
  not_understood: 'unclear',
  unknown_sender: 'stranger',
  unreadable: 'unreadable',
}

function registerForwarding(mail: Command): void {
  const forwarding = mail
    .command('forwarding')
    .description(
      "mailboxes that ask to be forwarded to an account's address: enter the code in Gmail, or open the link",
    )
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { listForwardingRequests } = await import('#bank-mail/list-forwarding-requests.ts')
        const found = await listForwardingRequests(ctx)
        out.result(found, () => {
          const rows = found.map((row) => [minuteCell(row.received_at), row.bank_account_id, row.mailbox, row.code])
          out.table({
            head: ['received (UTC)', 'account', 'mailbox', 'code'],
            rows,
            none: 'no mailbox has asked in the last 7 days',
          })
          // A link in a table would be broken over its lines.
          for (const { link } of found) if (link !== null) out.line(link)
        })
      })
    })
  withExamples(forwarding, 'bank-mail forwarding', 'bank-mail forwarding --json')
}

interface MatchOptions {
  readonly amount?: string
  readonly note?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

function registerMatch(mail: Command): void {
  const match = mail
    .command('match [id] [transaction_id]')
    .description("match a mail's money to a transaction; it is booked as if the mail had named it")
    .option('--amount <n>', 'in VND, if the mail was not understood')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--dry-run', 'only show what it would do')
    .option('--yes', 'do not ask')
    .action(
      async (id: string | undefined, transactionId: string | undefined, options: MatchOptions, command: Command) => {
        await inSession(command, async (session) => matchOne(session, id, transactionId, options))
      },
    )
  withExamples(match, 'bank-mail match 3 17 --note "code mistyped, payer called"', 'bank-mail match 3 17 --dry-run')
}

interface CloseOptions {
  readonly note?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

function registerClose(mail: Command): void {
  const close = mail
    .command('close [id]')
    .description('take a mail that needs no action off the list; it can no longer be matched')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--dry-run', 'only show what it would do')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: CloseOptions, command: Command) => {
      await inSession(command, async (session) => closeOne(session, id, options))
    })
  withExamples(close, 'bank-mail close 3 --note "news of the bank"', 'bank-mail close 3 --dry-run')
}

async function closeOne(session: Session, id: string | undefined, options: CloseOptions): Promise<void> {
  const { closeBankMail, previewClose } = await import('#bank-mail/close-bank-mail.ts')
  const { ctx, out } = session
  const mails = id === undefined && process.stdin.isTTY ? await waitingMails(session) : []
  const mailId = await pickMail(mails, id)
  if (!isTerminal() && !options.dryRun) await askNote(options.note)
  if (options.dryRun || process.stdin.isTTY) {
    const effects = await previewClose(ctx, mailId)
    if (options.dryRun) {
      printEffects(out, { bank_mail_id: mailId, status: 'closed' }, effects)
      return
    }
    effects.forEach((effect) => out.hint(`- ${effect}`))
  }
  const note = await askNote(options.note)
  await goAhead(options.yes, `Close bank mail ${mailId}?`)
  await performAs(session, closeBankMail, { id: mailId, note }, null)
  out.result({ bank_mail_id: mailId, status: 'closed' }, () => out.line(`bank mail ${mailId} is closed`))
}

/** The newest mails that wait, for a menu. */
async function waitingMails({ ctx }: Session): Promise<ListedMail[]> {
  const { listBankMails } = await import('#bank-mail/list-bank-mails.ts')
  return (await listBankMails(ctx, { unmatched: true })).rows
}

async function pickMail(mails: readonly ListedMail[], id: string | undefined): Promise<number> {
  const text = await requiredChoice(id, '<id>', 'Which mail?', () => Promise.resolve(mails.map(mailChoice)))
  return numberOf(text, '<id>')
}

async function matchOne(
  session: Session,
  id: string | undefined,
  transactionId: string | undefined,
  options: MatchOptions,
): Promise<void> {
  const [{ matchBankMail, previewMatch }, { bankMailOf }] = await Promise.all([
    import('#bank-mail/match-bank-mail.ts'),
    import('#bank-mail/list-bank-mails.ts'),
  ])
  const { ctx, out, caller } = session
  const isAsked = id === undefined || transactionId === undefined
  const mails = isAsked && process.stdin.isTTY ? await waitingMails(session) : []
  const mailId = await pickMail(mails, id)
  const suggestions = mails.find((mail) => mail.id === mailId)?.suggestions ?? []
  const target =
    suggestions.length > 0
      ? await requiredChoice(transactionId, '<transaction_id>', 'Whose money is it?', () =>
          Promise.resolve(suggestions.map(suggestionChoice)),
        )
      : await required(transactionId, '<transaction_id>')
  const transaction = await numberOf(target, '<transaction_id>')
  const mail = await bankMailOf(ctx, mailId)
  const needsAmount = mail !== null && mail.review !== null && mail.amount === null
  const amountText = needsAmount ? await required(options.amount, '--amount', 'How much, in VND?') : options.amount
  const amount = amountText === undefined ? {} : { amount: await numberOf(amountText, '--amount') }
  const matchTarget = { id: mailId, transactionId: transaction, ...amount }
  if (!isTerminal() && !options.dryRun) await askNote(options.note)
  const answerOf = ({ status }: MatchedMail) => ({ bank_mail_id: mailId, transaction_id: transaction, status })
  if (options.dryRun || process.stdin.isTTY) {
    const preview = await previewMatch(ctx, caller, matchTarget)
    if (options.dryRun) {
      printEffects(out, answerOf(preview), preview.effects)
      return
    }
    preview.effects.forEach((effect) => out.hint(`- ${effect}`))
  }
  const note = await askNote(options.note)
  await goAhead(options.yes, `Book the money of bank mail ${mailId} for transaction ${transaction}?`)
  const matched = await matchBankMail(ctx, caller, { ...matchTarget, note })
  const { outcomeOf } = await import('#support/outcome-of.ts')
  const outcome = await outcomeOf(ctx, transaction)
  out.result(answerOf(matched), () => out.line(outcome))
}

function mailChoice(mail: ListedMail): { value: string; name: string } {
  return {
    value: String(mail.id),
    name: `${mail.id}: ${mail.bank ?? '?'} ${moneyCell(mail.amount, 'VND')} at ${mail.received_at} UTC`,
  }
}

function suggestionChoice(suggestion: ListedMail['suggestions'][number]): { value: string; name: string } {
  const { transaction_id: transaction, external_ref: externalRef, amount_due: due, created_at: at } = suggestion
  return {
    value: String(transaction),
    name: `${transaction}: ${externalRef}, ${moneyCell(due, 'VND')} due, opened ${at} UTC`,
  }
}

/** The id; on a terminal picked from a menu if it is missing. */
async function pickAccount({ ctx }: Session, id: string | undefined): Promise<number> {
  const { listBankAccounts } = await import('#bank-accounts/list-bank-accounts.ts')
  const text = await requiredChoice(id, '<id>', 'Which account?', async () => {
    const open = (await listBankAccounts(ctx)).filter(({ disabledAt }) => disabledAt === null)
    return open.map((row) => ({ value: String(row.id), name: `${row.id}: ${row.bank} ${row.number} ${row.holder}` }))
  })
  return numberOf(text, '<id>')
}

async function printAccount({ ctx, out }: Session, account: BankAccount, heading?: string): Promise<void> {
  const [{ presentBankAccount }, { needsMailbox }] = await Promise.all([
    import('#bank-accounts/present-bank-account.ts'),
    import('#bank-mail/banks/readers.ts'),
  ])
  const shown = presentBankAccount(account, ctx.config)
  out.result(shown, () => {
    if (heading !== undefined) out.line(heading)
    out.fields({ ...shown })
    if (shown.forward_address === null && !shown.disabled)
      out.hint('Set BILLING_RELAY_ADDRESS to see the address that the bank must write to.')
    if (shown.mailbox === null && !shown.disabled && needsMailbox(account.bin))
      out.hint(
        `Mails of ${shown.bank_name} do not name the account: they complete payments only once you run billing-cli bank-account update ${account.id} --mailbox <address that the bank writes to>.`,
      )
  })
}
