import type { Command } from 'commander'
import type { BankAccount } from '#providers/bank-transfer/store.ts'
import type { ListedMail } from '#providers/bank-mail/list-bank-mails.ts'
import type { MatchedMail } from '#providers/bank-mail/match-bank-mail.ts'
import { goAhead, required, requiredChoice } from './ask.ts'
import { withExamples } from './examples.ts'
import { printable } from './printable.ts'
import { banner, inSession } from './session.ts'
import type { Session } from './session.ts'
import { formatFields } from './table.ts'
import { UsageError } from './usage-error.ts'

/** `bank-account …` and `bank-mail …`: where customers transfer to, and what the banks write about it. */
export function registerBankCommands(program: Command): void {
  const account = program.command('bank-account').description('accounts that customers transfer to')
  registerAdd(account)
  registerList(account)
  registerDisable(account)
  registerAssign(account)
  const mail = program.command('bank-mail').description('what banks wrote about incoming money')
  registerMails(mail)
  registerForwarding(mail)
  registerMatch(mail)
}

interface AddOptions {
  readonly bank?: string
  readonly number?: string
  readonly holder?: string
}

function registerAdd(account: Command): void {
  const add = account
    .command('add')
    .description('add an account; the bank shall forward its mails to the forward address')
    .option('--bank <bank>', 'short code (VCB), BIN or name of a bank of the VietQR list')
    .option('--number <number>', "the account's number")
    .option('--holder <name>', "the holder's name, as the bank writes it")
    .action(async (options: AddOptions, command: Command) => {
      await inSession(command, async (session) => {
        const { addBankAccount } = await import('#providers/bank-transfer/add-bank-account.ts')
        const input = {
          bank: await required(options.bank, '--bank', 'Bank (short code, BIN or name):'),
          number: await required(options.number, '--number', 'Account number:'),
          holder: await required(options.holder, '--holder', 'Account holder:'),
        }
        await printAccount(session, await addBankAccount(session.ctx, session.actor, input))
      })
    })
  withExamples(add, 'bank-account add --bank ACB --number 12345678 --holder "NGUYEN VAN AN"')
}

function registerList(account: Command): void {
  const list = account
    .command('list')
    .description('all accounts, disabled ones too')
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const [{ listBankAccounts }, { presentBankAccount }] = await Promise.all([
          import('#providers/bank-transfer/list-bank-accounts.ts'),
          import('#providers/bank-transfer/present-bank-account.ts'),
        ])
        const shown = (await listBankAccounts(ctx)).map((row) => presentBankAccount(row, ctx.config))
        out.result(shown, () => {
          const rows = shown.map((row) => [
            row.bank_account_id,
            row.bank,
            row.account_number,
            row.account_holder,
            row.forward_address ?? row.forward_code,
            row.disabled,
          ])
          out.table({
            head: ['id', 'bank', 'number', 'holder', 'forward to', 'disabled'],
            rows,
            none: 'No accounts yet: billing-cli bank-account add',
          })
        })
      })
    })
  withExamples(list, 'bank-account list', 'bank-account list --json')
}

function registerDisable(account: Command): void {
  const disable = account
    .command('disable [id]')
    .description('take no more money there: its mails are ignored, apps that have it offer no bank transfer')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: { yes?: boolean }, command: Command) => {
      await inSession(command, async (session) => {
        const { disableBankAccount } = await import('#providers/bank-transfer/disable-bank-account.ts')
        const accountId = await pickAccount(session, id)
        await goAhead(options.yes, `Disable bank account ${accountId} for good?`)
        await printAccount(session, await disableBankAccount(session.ctx, session.actor, accountId))
      })
    })
  withExamples(disable, 'bank-account disable 1')
}

function registerAssign(account: Command): void {
  const assign = account
    .command('assign [app] [id]')
    .description("from now on the app's customers transfer to this account")
    .action(async (named: string | undefined, id: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const { assignBankAccount } = await import('#providers/bank-transfer/assign-bank-account.ts')
        const app = await session.app(named)
        const accountId = await pickAccount(session, id)
        const assigned = await assignBankAccount(session.ctx, session.actor, app, accountId)
        await printAccount(session, assigned, banner(app))
      })
    })
  withExamples(assign, 'bank-account assign 1 1')
}

function registerMails(mail: Command): void {
  const list = mail
    .command('list')
    .description('mails of the relay, newest first, without what payers wrote')
    .option('--unmatched', "only those that brought money which is nobody's yet, with suggestions")
    .action(async (options: { unmatched?: boolean }, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { listBankMails } = await import('#providers/bank-mail/list-bank-mails.ts')
        const mails = await listBankMails(ctx, { unmatched: options.unmatched === true })
        out.result(mails, () => {
          const rows = mails.map((row) => [
            row.id,
            row.received_at,
            row.bank,
            row.amount,
            row.reason ?? row.status,
            row.transaction_id,
            suggested(row),
          ])
          out.table({
            head: ['id', 'received (UTC)', 'bank', 'amount', 'outcome', 'for', 'suggested'],
            rows,
            none: options.unmatched ? 'No money waits for a match.' : 'no mails',
          })
        })
      })
    })
  withExamples(list, 'bank-mail list', 'bank-mail list --unmatched')
}

function registerForwarding(mail: Command): void {
  const forwarding = mail
    .command('forwarding')
    .description(
      "mailboxes that ask to be forwarded to an account's address: enter the code in Gmail, or open the link",
    )
    .action(async (_options: object, command: Command) => {
      await inSession(command, async ({ ctx, out }) => {
        const { listForwardingRequests } = await import('#providers/bank-mail/list-forwarding-requests.ts')
        const found = await listForwardingRequests(ctx)
        out.result(found, () => {
          const rows = found.map((row) => [row.received_at, row.bank_account_id, row.mailbox, row.code])
          out.table({
            head: ['received (UTC)', 'account', 'mailbox', 'code'],
            rows,
            none: 'no mailbox has asked in the last 7 days',
          })
          // A link in a table would be broken over its lines.
          for (const { link } of found) if (link !== null) out.line(printable(link))
        })
      })
    })
  withExamples(forwarding, 'bank-mail forwarding', 'bank-mail forwarding --json')
}

function suggested(mail: ListedMail): string {
  return mail.suggestions.map(({ transaction_id }) => transaction_id).join(' ')
}

interface MatchOptions {
  readonly note?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

function registerMatch(mail: Command): void {
  const match = mail
    .command('match [id] [transaction_id]')
    .description("say which transaction a mail's money is for; it is booked as if the mail had named it")
    .option('--note <text>', 'why; kept in the audit log')
    .option('--dry-run', 'only say what it would do')
    .option('--yes', 'do not ask')
    .action(
      async (id: string | undefined, transactionId: string | undefined, options: MatchOptions, command: Command) => {
        await inSession(command, async (session) => matchOne(session, id, transactionId, options))
      },
    )
  withExamples(match, 'bank-mail match 3 17 --note "code mistyped, payer called"', 'bank-mail match 3 17 --dry-run')
}

async function matchOne(
  session: Session,
  id: string | undefined,
  transactionId: string | undefined,
  options: MatchOptions,
): Promise<void> {
  const [{ listBankMails }, { matchBankMail, previewMatch }] = await Promise.all([
    import('#providers/bank-mail/list-bank-mails.ts'),
    import('#providers/bank-mail/match-bank-mail.ts'),
  ])
  const { ctx, out, actor } = session
  const isAsked = id === undefined || transactionId === undefined
  const mails = isAsked && process.stdin.isTTY ? await listBankMails(ctx, { unmatched: true }) : []
  const mailText = await requiredChoice(id, '<id>', 'Which mail?', () => Promise.resolve(mails.map(mailChoice)))
  const mailId = await numberOf(mailText, '<id>')
  const suggestions = mails.find((mail) => mail.id === mailId)?.suggestions ?? []
  const target =
    suggestions.length > 0
      ? await requiredChoice(transactionId, '<transaction_id>', 'Whose money is it?', () =>
          Promise.resolve(suggestions.map(suggestionChoice)),
        )
      : await required(transactionId, '<transaction_id>')
  const transaction = await numberOf(target, '<transaction_id>')
  const note = options.dryRun ? '' : await required(options.note, '--note', 'Why? (kept in the audit log)')
  const answerOf = ({ status }: MatchedMail) => ({ bank_mail_id: mailId, transaction_id: transaction, status })
  if (options.dryRun || process.stdin.isTTY) {
    const preview = await previewMatch(ctx, mailId, transaction)
    if (options.dryRun) {
      const answer = { ...answerOf(preview), dry_run: true, effects: preview.effects }
      out.result(answer, () => preview.effects.forEach((effect) => out.line(`would: ${printable(effect)}`)))
      return
    }
    preview.effects.forEach((effect) => out.hint(`- ${effect}`))
  }
  await goAhead(options.yes, `Book the money of bank mail ${mailId} for transaction ${transaction}?`)
  const matched = await matchBankMail(ctx, actor, { id: mailId, transactionId: transaction, note })
  out.result(answerOf(matched), () => out.line(`the money is booked for transaction ${transaction}: ${matched.status}`))
}

function mailChoice(mail: ListedMail): { value: string; name: string } {
  return {
    value: String(mail.id),
    name: `${mail.id}: ${mail.bank ?? '?'} ${mail.amount ?? '?'} VND at ${mail.received_at}`,
  }
}

function suggestionChoice(suggestion: ListedMail['suggestions'][number]): { value: string; name: string } {
  const { transaction_id: transaction, external_ref: externalRef, amount_due: due, created_at: at } = suggestion
  return { value: String(transaction), name: `${transaction}: ${externalRef}, ${due} VND due, opened ${at}` }
}

/** The id; on a terminal picked from a menu where it is missing. */
async function pickAccount({ ctx }: Session, id: string | undefined): Promise<number> {
  const { listBankAccounts } = await import('#providers/bank-transfer/list-bank-accounts.ts')
  const text = await requiredChoice(id, '<id>', 'Which account?', async () => {
    const open = (await listBankAccounts(ctx)).filter(({ disabledAt }) => disabledAt === null)
    return open.map((row) => ({ value: String(row.id), name: `${row.id}: ${row.bank} ${row.number} ${row.holder}` }))
  })
  return numberOf(text, '<id>')
}

async function numberOf(text: string, name: string): Promise<number> {
  const { parseNumericId } = await import('#shared/ids.ts')
  const number = parseNumericId(text)
  if (number === null) throw new UsageError(`${name} must be a number, and not ${text}`)
  return number
}

async function printAccount({ ctx, out }: Session, account: BankAccount, heading?: string): Promise<void> {
  const { presentBankAccount } = await import('#providers/bank-transfer/present-bank-account.ts')
  const shown = presentBankAccount(account, ctx.config)
  out.result(shown, () => {
    if (heading !== undefined) out.line(heading)
    out.line(formatFields({ ...shown }))
    if (shown.forward_address === null && !shown.disabled)
      out.hint('Set BILLING_RELAY_ADDRESS to see the address that the bank shall write to.')
  })
}
