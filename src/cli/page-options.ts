import { Option, type Command } from 'commander'
import { oneOf } from './one-of.ts'
import { readBytes } from './read-file.ts'

/** An option that takes `on` or `off`. */
function onOrOff(name: string, description: string): Option {
  return new Option(`${name} <on_or_off>`, description).argParser(oneOf('on', 'off'))
}

/** The options of `app update` for pages and mails, with the fields of its input. */
const PAGE_OPTIONS: readonly { readonly field: string; readonly option: Option }[] = [
  {
    field: 'time_zone',
    option: new Option('--time-zone <zone>', 'of the dates that payers read, such as Asia/Ho_Chi_Minh'),
  },
  {
    field: 'bank_app_links',
    option: onOrOff('--bank-app-links', 'whether the bank page links to banking apps on phones, through vietqr.io'),
  },
  { field: 'receipts', option: onOrOff('--receipts', 'whether payers get a mail when money was received or refunded') },
  { field: 'logo', option: new Option('--logo <file>', 'logo of its pages: PNG or SVG of at most 100 KB') },
  { field: 'accent', option: new Option('--accent <colour>', 'colour of links and buttons, such as #1b5fc1') },
  {
    field: 'support',
    option: new Option('--support <address>', 'where payers get help: an e-mail address or a web page'),
  },
  { field: 'terms_url', option: new Option('--terms-url <url>', 'terms that its pages link to') },
  { field: 'privacy_url', option: new Option('--privacy-url <url>', 'privacy policy that its pages link to') },
  {
    field: 'statement_name',
    option: new Option('--statement-name <name>', "what a payer's statement calls the payment"),
  },
]

const VALUES = new Map<unknown, boolean | null>([
  ['', null],
  ['on', true],
  ['off', false],
])

export function addPageOptions(command: Command): Command {
  for (const { option } of PAGE_OPTIONS) command.addOption(option)
  return command
}

function valueOf(field: string, value: unknown): unknown {
  if (VALUES.has(value)) return VALUES.get(value)
  return field === 'logo' ? readBytes(String(value)) : value
}

/** The options that were given; null for an empty text, which restores the default. */
export function pageInput(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = PAGE_OPTIONS.flatMap(({ field, option }) => {
    const value = options[option.attributeName()]
    return value === undefined ? [] : [[field, valueOf(field, value)] as const]
  })
  return Object.fromEntries(given)
}
