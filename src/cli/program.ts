import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { errorText } from './error-text.ts'
import { terminalWidth } from './terminal-width.ts'

type Register = (program: Command) => void

/** Headings of the list of commands. */
type Section = 'Search' | 'Apps and plans' | 'Customers' | 'Payments' | 'Webhooks and mails' | 'Development' | 'Service'

interface Group {
  readonly section: Section
  /** The first words of the group's commands, with their descriptions in the list of commands. */
  readonly words: Readonly<Record<string, string>>
  readonly load: () => Promise<Register>
}

/** In the order of the list of commands. */
const GROUPS: readonly Group[] = [
  {
    section: 'Search',
    words: {
      find: 'find what a name, id, link or address refers to, with a screen about the end user: subscription, payments, mails, next step',
      open: 'the page of a checkout, a transaction, an end user or a customer; opened if there is a desktop',
    },
    load: async () => (await import('./find-commands.ts')).registerFindCommands,
  },
  {
    section: 'Apps and plans',
    words: { app: "sellers' apps, their secrets and settings" },
    load: async () => (await import('./app-commands.ts')).registerAppCommands,
  },
  {
    section: 'Payments',
    words: { method: "how an app's customers can pay" },
    load: async () => (await import('./method-commands.ts')).registerMethodCommands,
  },
  {
    section: 'Payments',
    words: { notification: 'notifications of payment providers that need attention' },
    load: async () => (await import('./notification-commands.ts')).registerNotificationCommands,
  },
  {
    section: 'Payments',
    words: {
      'bank-account': 'accounts that customers transfer to',
      'bank-mail': 'what banks wrote about incoming money',
    },
    load: async () => (await import('./bank-commands.ts')).registerBankCommands,
  },
  {
    section: 'Apps and plans',
    words: { plan: 'what an app sells', price: 'the prices of a plan' },
    load: async () => (await import('./plan-commands.ts')).registerPlanCommands,
  },
  {
    section: 'Customers',
    words: { customer: 'the people who receive reminders' },
    load: async () => (await import('./customer-commands.ts')).registerCustomerCommands,
  },
  {
    section: 'Customers',
    words: { subscription: 'who has access, and until when' },
    load: async () => (await import('./subscription-commands.ts')).registerSubscriptionCommands,
  },
  {
    section: 'Payments',
    words: { transaction: 'payments, and those that need review', ledger: 'the ledgers' },
    load: async () => (await import('./transaction-commands.ts')).registerTransactionCommands,
  },
  {
    section: 'Payments',
    words: { payment: 'money that arrived, and what still needs a decision' },
    load: async () => (await import('./payment-commands.ts')).registerPaymentCommands,
  },
  {
    section: 'Payments',
    words: { reconcile: 'look up pending payments at their providers now' },
    load: async () => (await import('./reconcile-commands.ts')).registerReconcileCommands,
  },
  {
    section: 'Webhooks and mails',
    words: { webhook: 'events that were delivered to apps, and those that were not' },
    load: async () => (await import('./webhook-commands.ts')).registerWebhookCommands,
  },
  {
    section: 'Development',
    words: {
      listen: "follow an app's events as they happen, and forward them to a local server",
      trigger: 'cause a real event on a sandbox app, by doing what causes it for a new end user',
      request: 'sign an API call as the app, send it, and print the response',
    },
    load: async () => (await import('./developer-commands.ts')).registerDeveloperCommands,
  },
  {
    section: 'Development',
    words: { demo: 'make a sandbox app with a year of history, for screenshots and exploring' },
    load: async () => (await import('./demo-commands.ts')).registerDemoCommands,
  },
  {
    section: 'Webhooks and mails',
    words: {
      reminders: 'renewal mails',
      mail: 'the mail server',
      realtime: 'the realtime databases of client-side apps',
      receipts: 'mails about money that was received or refunded',
    },
    load: async () => {
      const [{ registerRenewalCommands }, { registerUnconfirmedCommands }] = await Promise.all([
        import('./renewal-commands.ts'),
        import('./unconfirmed-commands.ts'),
      ])
      return (program) => {
        registerRenewalCommands(program)
        registerUnconfirmedCommands(program)
      }
    },
  },
  {
    section: 'Service',
    words: {
      migrate: 'bring the database up to date; stop the daemons of an older version first',
      audit: 'who changed what, and why',
    },
    load: async () => (await import('./operations-commands.ts')).registerOperationsCommands,
  },
  {
    section: 'Service',
    words: { key: 'the keys that secrets are encrypted with' },
    load: async () => (await import('./key-commands.ts')).registerKeyCommands,
  },
  {
    section: 'Service',
    words: {
      stats:
        'subscriptions by state, cash by month, deferred revenue, renewal rate, deliveries; of all live apps, or of one',
    },
    load: async () => (await import('./stats-commands.ts')).registerStatsCommands,
  },
  {
    section: 'Service',
    words: {
      watch: 'a live view, redrawn in place: daemon, requests, deliveries, payments, outbox, jobs; q quits',
    },
    load: async () => (await import('./watch-commands.ts')).registerWatchCommands,
  },
  {
    section: 'Service',
    words: { doctor: 'check the whole service; exit 1 if a check fails; each failure is shown with its fix' },
    load: async () => (await import('./doctor-commands.ts')).registerDoctorCommands,
  },
  {
    section: 'Service',
    words: { service: 'Paygate as a service of systemd' },
    load: async () => (await import('./systemd-commands.ts')).registerSystemdCommands,
  },
  {
    section: 'Service',
    words: {
      docs: 'the reference of all commands, as Markdown',
      completion: 'print a completion script for bash, zsh or fish',
    },
    load: async () => {
      const { registerReferenceCommands } = await import('./reference-commands.ts')
      return (program) => registerReferenceCommands(program, createProgram)
    },
  },
]

/**
 * The command tree. With `word`, the first of a command line, only that word's group is loaded and the others are only named, which keeps
 * `--help` fast. A command imports what it needs when it runs.
 */
export async function createProgram(word?: string): Promise<Command> {
  const program = new Command('billing-cli')
    .description('Runs Paygate: apps, plans, payments that need review, and the service itself.')
    .option('--json', 'print one JSON value instead of tables')
    .showHelpAfterError('(add --help for how to use it)')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      outputError: (message, write) => write(errorText(withoutWords(message))),
      getOutHelpWidth: terminalWidth,
      getErrHelpWidth: terminalWidth,
    })
  // Of the program alone: commands may have an option of this name.
  if (word === '') program.version(productVersion(), '--version', 'print the version')
  for (const { section, words, load } of GROUPS) {
    program.commandsGroup(`${section}:`)
    if (word === undefined || word in words) (await load())(program)
    else for (const [name, description] of Object.entries(words)) program.command(name).description(description)
  }
  program.helpCommand('help [command]', 'explain a command')
  throwInsteadOfExit(program)
  return program
}

function productVersion(): string {
  const path = join(import.meta.dirname, '..', '..', 'package.json')
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}

/** `help app create` as `app create --help`: commander's own help goes one word deep. What names no command is left to commander. */
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

/** Superfluous words may hold a secret that was meant for a prompt. */
function withoutWords(message: string): string {
  return message.replace(/(too many arguments .* but got \d+): .*/s, '$1.\n')
}

/** commander exits with 1 on wrong usage, where the rule is 2 (R260). */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) throwInsteadOfExit(child)
}
