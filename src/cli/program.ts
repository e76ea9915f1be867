import { Command, Help } from 'commander'
import { productVersion } from '#product-version.ts'
import { authorizeOptions } from './authorize.ts'
import { addCommands, type Commands } from './declaration.ts'
import { errorText } from './error-text.ts'
import { terminalWidth } from './terminal-width.ts'
import { ACCOUNT, type Who } from './who.ts'
import { wrapLines } from './wrap-lines.ts'

/** Headings of the list of commands. */
type Section = 'Search' | 'Apps and plans' | 'Customers' | 'Payments' | 'Webhooks and mails' | 'Development' | 'Service'

/** The first words of some commands, with their descriptions in the list of commands, and the file that declares the commands. */
type Group = readonly [
  section: Section,
  words: Readonly<Record<string, string>>,
  load: () => Promise<{ readonly commands: Commands }>,
]

/** In the order of the list of commands. */
const GROUPS: readonly Group[] = [
  [
    'Search',
    {
      find: 'find what a name, id, link or address refers to, with a screen about the end user: subscription, payments, mails, next step',
      open: 'the page of a checkout, a transaction, an end user or a customer; opened if there is a desktop',
    },
    () => import('./find-commands.ts'),
  ],
  ['Apps and plans', { app: "sellers' apps, their secrets and settings" }, () => import('./app-commands.ts')],
  ['Payments', { method: "how an app's customers can pay" }, () => import('./method-commands.ts')],
  [
    'Payments',
    { notification: 'notifications of payment providers that need attention' },
    () => import('./notification-commands.ts'),
  ],
  [
    'Payments',
    {
      'bank-account': 'accounts that customers transfer to',
      'bank-mail': 'what banks wrote about incoming money',
    },
    () => import('./bank-commands.ts'),
  ],
  ['Apps and plans', { plan: 'what an app sells', price: 'the prices of a plan' }, () => import('./plan-commands.ts')],
  ['Apps and plans', { promotion: 'codes that take something off a payment' }, () => import('./promotion-commands.ts')],
  ['Customers', { customer: 'the people who receive reminders' }, () => import('./customer-commands.ts')],
  ['Customers', { subscription: 'who has access, and until when' }, () => import('./subscription-commands.ts')],
  [
    'Payments',
    { transaction: 'payments, and those that need review', ledger: 'the ledgers' },
    () => import('./transaction-commands.ts'),
  ],
  [
    'Payments',
    { payment: 'money that arrived, and what still needs a decision' },
    () => import('./payment-commands.ts'),
  ],
  [
    'Payments',
    { reconcile: 'look up pending payments at their providers now' },
    () => import('./reconcile-commands.ts'),
  ],
  [
    'Webhooks and mails',
    { webhook: 'events that were delivered to apps, and those that were not' },
    () => import('./webhook-commands.ts'),
  ],
  [
    'Development',
    {
      listen: "follow an app's events as they happen, and forward them to a local server",
      trigger: 'cause a real event on a sandbox app, by doing what causes it for a new end user',
      request: 'sign an API call as the app, send it, and print the response',
    },
    () => import('./developer-commands.ts'),
  ],
  [
    'Development',
    { demo: 'make a sandbox app with a year of history, for screenshots and exploring' },
    () => import('./demo-commands.ts'),
  ],
  [
    'Webhooks and mails',
    {
      reminders: 'renewal mails',
      mail: 'the mail server',
      realtime: 'the realtime databases of client-side apps',
      receipts: 'mails about money that was received or refunded',
    },
    () => import('./mail-commands.ts'),
  ],
  [
    'Service',
    {
      migrate: 'bring the database up to date, in steps that daemons of the version before survive',
      upgrade: 'migrate, then serve the version that the package installed; --rehearse tries it on a copy of a backup',
      audit: 'who changed what, and why',
    },
    () => import('./operations-commands.ts'),
  ],
  ['Service', { backup: 'encrypted copies of the database' }, () => import('./backup-commands.ts')],
  ['Service', { key: 'the keys that secrets are encrypted with' }, () => import('./key-commands.ts')],
  [
    'Service',
    {
      stats:
        'how business is: this month compared, subscriptions, renewal rates, deferred revenue, deliveries; of all live apps, or of one',
    },
    () => import('./stats-commands.ts'),
  ],
  [
    'Payments',
    { console: 'the review queue on a whole screen: open, decide, find; only reads without --write' },
    () => import('./console-commands.ts'),
  ],
  [
    'Payments',
    { review: 'what needs review, the oldest first: payments, bank mails, mails, webhooks, paused accounts' },
    () => import('./review-commands.ts'),
  ],
  [
    'Service',
    { alert: 'what operators are told when something begins to be wrong' },
    () => import('./alert-commands.ts'),
  ],
  [
    'Service',
    {
      watch: 'a live view, redrawn in place: daemon, requests, deliveries, payments, outbox, jobs; q quits',
    },
    () => import('./watch-commands.ts'),
  ],
  [
    'Service',
    { doctor: 'check the whole service; exit 1 if a check fails; each failure is shown with its fix' },
    () => import('./doctor-commands.ts'),
  ],
  [
    'Service',
    {
      operator: 'people who work through SSH with a key and a role',
      as: "what sshd runs for an operator's key; ends as the command that the operator asked for",
    },
    () => import('./operator-commands.ts'),
  ],
  [
    'Payments',
    { approval: 'refunds above BILLING_REFUND_LIMIT, which wait for a second operator' },
    () => import('./approval-commands.ts'),
  ],
  [
    'Service',
    {
      setup:
        'from a bare server to a running service: settings, keys, database, proxy, DNS, test mail; run again, it changes what differs',
    },
    () => import('./setup-commands.ts'),
  ],
  ['Service', { service: 'Paygate as a service of systemd' }, () => import('./systemd-commands.ts')],
  [
    'Service',
    {
      docs: 'the reference of all commands, as Markdown',
      completion: 'print a completion script for bash, zsh or fish',
    },
    async () => ({ commands: (await import('./reference-commands.ts')).commandsFor(createProgram) }),
  ],
]

/** A command's name and arguments, in the list of its group, without `[options]`, which every command has. */
function termOf(command: Command): string {
  return `${command.name()} ${command.usage().replace('[options]', '').trim()}`
}

/**
 * The command tree. With `word`, the first of a command line, only that word's group is loaded and the others are only named, which keeps
 * `--help` fast. A command imports what it needs when it runs.
 */
export async function createProgram(word?: string, who: Who = ACCOUNT, asJson = false): Promise<Command> {
  const program = new Command('billing-cli')
    .description('Runs Paygate: apps, plans, payments that need review, and the service itself.')
    .option('--json', 'print one JSON value instead of tables')
    .showHelpAfterError('(add --help for how to use it)')
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: 20,
      subcommandTerm: termOf,
      // Further lines are as far in as what follows `Usage: `.
      commandUsage: (command) => wrapLines(`       ${new Help().commandUsage(command)}`, terminalWidth()).trimStart(),
    })
    .configureOutput({
      // With --json the error is printed as JSON, by whoever runs the program.
      writeErr: (text) => {
        if (!asJson) process.stderr.write(text)
      },
      outputError: (message, write) => write(errorText(withoutWords(message))),
      getOutHelpWidth: terminalWidth,
      getErrHelpWidth: terminalWidth,
    })
  // Of the program alone: commands may have an option of this name.
  const version = asJson ? JSON.stringify({ version: productVersion() }) : productVersion()
  if (word === '') program.version(version, '--version', 'print the version')
  for (const [section, words, load] of GROUPS) {
    program.commandsGroup(`${section}:`)
    if (word === undefined || word in words) addCommands(program, words, (await load()).commands, who)
    else for (const [name, description] of Object.entries(words)) program.command(name).description(description)
  }
  program.helpCommand('help [command]', 'explain a command')
  program.hook('preAction', (_program, command) => authorizeOptions(command, who))
  throwInsteadOfExit(program)
  return program
}

/** `help app create` as `app create --help`: commander's own help goes only one word deep. A line that names no command stays as it is. */
export function spellHelp(program: Command, words: readonly string[]): readonly string[] {
  const [first, ...path] = words.filter((word) => !word.startsWith('-'))
  if (first !== 'help') return words
  let command: Command | undefined = program
  for (const word of path) command = command?.commands.find((child) => child.name() === word)
  return command ? [...path, '--help'] : words
}

/** The word that determines a command line's group; for `help app` it is `app`. Empty if there is none. */
export function leadingWord(words: readonly string[]): string {
  const [first = '', second = ''] = words.filter((word) => !word.startsWith('-'))
  return first === 'help' ? second : first
}

/** Removes superfluous words from an error: they may hold a secret that was meant for a prompt. */
export function withoutWords(message: string): string {
  return message.replace(/(too many arguments .* but got \d+): .*/s, '$1.\n')
}

/** commander exits with 1 on wrong usage, where the rule is 2 (R260). */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) throwInsteadOfExit(child)
}
