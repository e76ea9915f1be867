import { printable } from './printable.ts'
import type { BankAccount } from '#bank-accounts/store.ts'
import type { ListedMail } from '#bank-mail/list-bank-mails.ts'
import type { MatchedMail } from '#bank-mail/match-bank-mail.ts'
import { goAhead, required } from './ask.ts'
import { appCell, minuteCell, moneyCell, stateCell } from './cells.ts'
import { agreeTo, refuseWithoutNote, type Consent } from './change.ts'
import { Coloured } from './coloured.ts'
import { NOTE, YES, type Commands, type Flags, type Texts } from './declaration.ts'
import { listOfApps, listOfService, type OfApps } from './list.ts'
import { numberOf, pickId, type IdChoice } from './number-of.ts'
import { banner, bannersOf, performAs, type Session } from './session.ts'
import { terminalWidth } from './terminal-width.ts'
import { wrap } from './wrap.ts'

/** `bank-account …` and `bank-mail …`: where customers transfer to, and what the banks write about it. */
export const commands: Commands = {
  'bank-account add': {
    description: 'add an account; have the bank forward its mails to the forward address',
    options: [
      ['--bank <bank>', 'short code (VCB), BIN or name of a bank of the VietQR list'],
      ['--number <number>', "the account's number"],
      ['--holder <name>', "the holder's name, as the bank writes it"],
      ['--mailbox <address>', 'the address that the bank writes to; mails to any other are ignored'],
    ],
    examples: ['bank-account add --bank ACB --number 12345678 --holder "NGUYEN VAN AN"'],
    async change(session, _args, options: Texts<'bank' | 'number' | 'holder' | 'mailbox'>) {
      const { addBankAccount } = await import('#bank-accounts/add-bank-account.ts')
      const input = {
        bank: await required(options.bank, '--bank', 'Bank (short code, BIN or name):'),
        number: await required(options.number, '--number', 'Account number:'),
        holder: await required(options.holder, '--holder', 'Account holder:'),
        mailbox: options.mailbox,
      }
      await printAccount(session, await performAs(session, addBankAccount, input, {}))
    },
  },
  'bank-account list': listOfService({
    description: 'all accounts, disabled ones too',
    examples: ['bank-account list', 'bank-account list --json'],
    async rows({ ctx }) {
      const { listBankAccounts } = await import('#bank-accounts/store.ts')
      const { presentBankAccount } = await import('#bank-accounts/present-bank-account.ts')
      return (await listBankAccounts(ctx.db)).map((row) => presentBankAccount(row, ctx.config))
    },
    columns: () => [
      ['id', (row) => row.bank_account_id],
      ['bank', (row) => row.bank],
      ['number', (row) => row.account_number],
      ['holder', (row) => row.account_holder],
      ['forward to', (row) => row.forward_address ?? row.forward_code],
      ['mailbox', (row) => row.mailbox],
      ['disabled', (row) => row.disabled],
    ],
    none: () => 'No accounts yet: billing-cli bank-account add',
  }),
  'bank-account update [id]': {
    description: 'change the mailbox that the bank writes to; an empty value accepts mails to any mailbox',
    options: [['--mailbox <address>', 'the address that the bank writes to, or "" for any']],
    examples: ['bank-account update 1 --mailbox seller@example.com', 'bank-account update 1 --mailbox ""'],
    async change(session, [id], options: { mailbox?: string }) {
      const { updateBankAccount } = await import('#bank-accounts/update-bank-account.ts')
      const accountId = await pickAccount(session, id)
      // Empty is an answer of its own here.
      const mailbox = options.mailbox ?? (await required(undefined, '--mailbox', 'Address that the bank writes to:'))
      await printAccount(session, await performAs(session, updateBankAccount, { mailbox }, { accountId }))
    },
  },
  'bank-account disable [id]': {
    description: 'stop using an account: its mails are ignored, and its apps stop offering bank transfer',
    options: [YES],
    examples: ['bank-account disable 1'],
    async change(session, [id], { yes, dryRun }: Consent) {
      const { disableBankAccount } = await import('#bank-accounts/disable-bank-account.ts')
      const accountId = await pickAccount(session, id)
      await goAhead(yes ?? dryRun, `Disable bank account ${accountId} for good?`)
      await printAccount(session, await performAs(session, disableBankAccount, undefined, { accountId }))
    },
  },
  'bank-account assign [app] [id]': {
    description: "have the app's customers transfer to this account from now on",
    examples: ['bank-account assign 1 1'],
    async change(session, [named, id]) {
      const { assignBankAccount } = await import('#bank-accounts/assign-bank-account.ts')
      const app = await session.pickApp(named)
      const accountId = await pickAccount(session, id)
      const assigned = await performAs(session, assignBankAccount, undefined, { app, accountId })
      await printAccount(session, assigned, banner(app))
    },
  },
  'bank-mail list': listOfApps({
    description: 'mails of the relay, newest first, without what payers wrote',
    options: [
      ['--unmatched', 'only those that need review, with suggestions'],
      ['--limit <n>', 'how many at most; 200, with --unmatched all'],
    ],
    examples: ['bank-mail list', 'bank-mail list --unmatched'],
    defaultLimit: ({ unmatched }: Flags<'unmatched'>) => (unmatched ? Infinity : 200),
    async page({ ctx, options }: OfApps<Flags<'unmatched'>>, query) {
      const { listBankMails } = await import('#bank-mail/list-bank-mails.ts')
      return listBankMails(ctx, { unmatched: options.unmatched === true }, query)
    },
    columns: () => [
      ['id', (row) => row.id],
      ['received (UTC)', (row) => minuteCell(row.received_at)],
      ['app', appCell],
      ['bank', (row) => row.bank],
      ['amount', (row) => (row.amount === null ? null : moneyCell(row.amount, 'VND'))],
      ['outcome', (row) => stateCell(row.reason ?? row.status)],
      ['needs review', (row) => row.review && new Coloured(REVIEWS[row.review], 'red')],
      ['for', (row) => row.transaction_id],
    ],
    none: ({ options }) => (options.unmatched ? 'No money waits for a match.' : 'no mails'),
    async below(mails) {
      const { fitOf } = await import('#bank-mail/fits.ts')
      const fits = mails.map((mail) => fitOf(mail)).filter((fit) => fit !== null)
      return fits.map(({ what, command }) => wrap(`${printable(what)}: ${command}`, terminalWidth()))
    },
    codes: ['outcome'],
    right: ['id', 'amount', 'for'],
  }),
  'bank-mail forwarding': listOfService({
    description:
      "mailboxes that ask to be forwarded to an account's address: enter the code in Gmail, or open the link",
    examples: ['bank-mail forwarding', 'bank-mail forwarding --json'],
    async rows({ ctx }) {
      const { listForwardingRequests } = await import('#bank-mail/list-forwarding-requests.ts')
      return listForwardingRequests(ctx)
    },
    columns: () => [
      ['received (UTC)', (row) => minuteCell(row.received_at)],
      ['account', (row) => row.bank_account_id],
      ['mailbox', (row) => row.mailbox],
      ['code', (row) => row.code],
    ],
    none: () => 'no mailbox has asked in the last 7 days',
    // A link in a table would be broken over its lines.
    below: (rows) => rows.flatMap(({ link }) => (link === null ? [] : [printable(link)])),
  }),
  'bank-mail match [id] [transaction_id]': {
    description: "match a mail's money to a transaction; it is booked as if the mail had named it",
    options: [
      ['--amount <n>', 'in VND, if the mail was not understood'],
      NOTE,
      ['--dry-run', 'only show what it would do'],
      YES,
    ],
    examples: ['bank-mail match 3 17 --note "code mistyped, payer called"', 'bank-mail match 3 17 --dry-run'],
    run: (session, [id, transactionId], options: Consent & Texts<'amount'>) =>
      matchOne(session, id, transactionId, options),
  },
  'bank-mail close [id]': {
    description: 'take a mail that needs no action off the list; it can no longer be matched',
    options: [NOTE, ['--dry-run', 'only show what it would do'], YES],
    examples: ['bank-mail close 3 --note "news of the bank"', 'bank-mail close 3 --dry-run'],
    run: (session, [id], options: Consent) => closeOne(session, id, options),
  },
}

/** Why a mail needs review. */
const REVIEWS: Readonly<Record<NonNullable<ListedMail['review']>, string>> = {
  credit: 'money',
  not_understood: 'unclear',
  unknown_sender: 'stranger',
  unreadable: 'unreadable',
}

async function closeOne(session: Session, id: string | undefined, options: Consent): Promise<void> {
  const { closeBankMail, previewClose } = await import('#bank-mail/close-bank-mail.ts')
  const mails = id === undefined && process.stdin.isTTY ? await waitingMails(session) : []
  const mailId = await pickMail(mails, id)
  const answer = { id: mailId, bank_mail_id: mailId, status: 'closed' }
  await refuseWithoutNote(options)
  const note = await agreeTo(session, options, `Close bank mail ${mailId}?`, async () => {
    const { appId, effects } = await previewClose(session.ctx, mailId)
    return { banners: await bannersOf(session.ctx, [appId]), answer, effects }
  })
  if (note === null) return
  await performAs(session, closeBankMail, { id: mailId, note }, null)
  session.out.result(answer, () => session.out.line(`bank mail ${mailId} is closed`))
}

/** The newest mails that wait, for a menu. */
async function waitingMails({ ctx }: Session): Promise<ListedMail[]> {
  const { listBankMails } = await import('#bank-mail/list-bank-mails.ts')
  return (await listBankMails(ctx, { unmatched: true })).rows
}

function pickMail(mails: readonly ListedMail[], id: string | undefined): Promise<number> {
  return pickId(id, {
    question: 'Which mail?',
    choices: () =>
      mails.map((mail) => ({
        id: mail.id,
        words: `${mail.bank ?? '?'} ${moneyCell(mail.amount, 'VND')} at ${mail.received_at} UTC`,
      })),
  })
}

async function matchOne(
  session: Session,
  id: string | undefined,
  transactionId: string | undefined,
  options: Consent & Texts<'amount'>,
): Promise<void> {
  const { matchBankMail, previewMatch } = await import('#bank-mail/match-bank-mail.ts')
  const { findBankMail } = await import('#bank-mail/store.ts')
  const { ctx, out, caller } = session
  const isAsked = id === undefined || transactionId === undefined
  const mails = isAsked && process.stdin.isTTY ? await waitingMails(session) : []
  const mailId = await pickMail(mails, id)
  const transaction = await pickTarget(mails.find((mail) => mail.id === mailId)?.suggestions ?? [], transactionId)
  const mail = await findBankMail(ctx.db, mailId)
  const needsAmount = mail !== null && mail.review !== null && mail.amount === null
  const amountText = needsAmount ? await required(options.amount, '--amount', 'How much, in VND?') : options.amount
  const amount = amountText === undefined ? {} : { amount: numberOf(amountText, '--amount') }
  const target = { id: mailId, transactionId: transaction, ...amount }
  await refuseWithoutNote(options)
  const ids = { id: mailId, bank_mail_id: mailId, transaction_id: transaction }
  const answerOf = ({ status }: MatchedMail) => ({ ...ids, status })
  const question = `Book the money of bank mail ${mailId} for transaction ${transaction}?`
  const note = await agreeTo(session, options, question, async () => {
    const preview = await previewMatch(ctx, caller, target)
    const banners = await bannersOf(ctx, [preview.appId])
    return { banners, answer: answerOf(preview), effects: preview.effects }
  })
  if (note === null) return
  const matched = await matchBankMail(ctx, caller, { ...target, note })
  const { outcomeOf } = await import('#support/outcome-of.ts')
  const outcome = await outcomeOf(ctx, transaction)
  out.result(answerOf(matched), () => out.line(outcome))
}

async function pickTarget(suggestions: ListedMail['suggestions'], given: string | undefined): Promise<number> {
  const name = '<transaction_id>'
  if (suggestions.length === 0) return numberOf(await required(given, name), name)
  return pickId(given, { name, question: 'Whose money is it?', choices: () => suggestions.map(suggestionChoice) })
}

function suggestionChoice(suggestion: ListedMail['suggestions'][number]): IdChoice {
  const { transaction_id: id, external_ref: externalRef, amount_due: due, created_at: at } = suggestion
  return { id, words: `${externalRef}, ${moneyCell(due, 'VND')} due, opened ${at} UTC` }
}

function pickAccount({ ctx }: Session, given: string | undefined): Promise<number> {
  return pickId(given, {
    question: 'Which account?',
    async choices() {
      const { listBankAccounts } = await import('#bank-accounts/store.ts')
      const open = (await listBankAccounts(ctx.db)).filter(({ disabledAt }) => disabledAt === null)
      return open.map(({ id, bank, number, holder }) => ({ id, words: `${bank} ${number} ${holder}` }))
    },
  })
}

async function printAccount({ ctx, out }: Session, account: BankAccount, heading?: string): Promise<void> {
  const { presentBankAccount } = await import('#bank-accounts/present-bank-account.ts')
  const { needsMailbox } = await import('#bank-mail/banks/readers.ts')
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
