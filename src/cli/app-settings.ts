import { Option } from 'commander'
import { MORE_EVENTS } from '#apps/more-events.ts'
import type { OptionLine } from './declaration.ts'
import { oneOf } from './one-of.ts'
import { readBytes } from './read-file.ts'

type Setting = readonly [field: string, ...option: OptionLine]

const onOrOff = oneOf('on', 'off')

/** The settings of `app update`: the field of its input, and the option. */
const SETTINGS: readonly Setting[] = [
  ['name', '--name <name>', 'what operators and customers call it'],
  ['webhook_url', '--webhook-url <url>', 'where its webhooks go'],
  ['mail_from', '--mail-from <address>', 'sender of its mails'],
  ['path', '--path <template>', 'path of the realtime node, with {uid}'],
  [
    'client_amounts',
    '--client-amounts <on_or_off>',
    'whether clients with an identity token may open one-time payments, whose amount they choose',
    onOrOff,
  ],
  [
    'return_origins',
    '--return-origins <origins>',
    'comma-separated origins that success_url and cancel_url of such clients must have',
  ],
  [
    'more_events',
    '--more-events <types>',
    'webhooks beside the usual ones: transaction.refunded, transaction.flagged, subscription.expired, comma-separated, all or none',
  ],
  ['time_zone', '--time-zone <zone>', 'of the dates that payers read, such as Asia/Ho_Chi_Minh'],
  [
    'bank_app_links',
    '--bank-app-links <on_or_off>',
    'whether the bank page links to banking apps on phones, through vietqr.io',
    onOrOff,
  ],
  ['receipts', '--receipts <on_or_off>', 'whether payers get a mail when money was received or refunded', onOrOff],
  ['logo', '--logo <file>', 'logo of its pages: PNG or SVG of at most 100 KB'],
  ['accent', '--accent <colour>', 'colour of links and buttons, such as #1b5fc1'],
  ['support', '--support <address>', 'where payers get help: an e-mail address or a web page'],
  ['terms_url', '--terms-url <url>', 'terms that its pages link to'],
  ['privacy_url', '--privacy-url <url>', 'privacy policy that its pages link to'],
  ['statement_name', '--statement-name <name>', "what a payer's statement calls the payment"],
]

export const settingOptions: readonly OptionLine[] = SETTINGS.map(([, ...option]) => option)

/** The settings that were given, as the fields of the input. */
export function settingsInput(options: Readonly<Record<string, string>>): Record<string, unknown> {
  const given = SETTINGS.flatMap((setting) => {
    const value = options[new Option(setting[1]).attributeName()]
    return value === undefined ? [] : [[setting[0], valueOf(setting, value)] as const]
  })
  return Object.fromEntries(given)
}

/** Null for an empty text, which restores the default; name and path have none. */
function valueOf([field, , , parse]: Setting, text: string): unknown {
  if (field === 'more_events') return eventsOf(text)
  if (text === '') return field === 'name' || field === 'path' ? text : null
  if (field === 'return_origins') return text.split(',').map((origin) => origin.trim())
  if (field === 'logo') return readBytes(text)
  return parse === onOrOff ? text === 'on' : text
}

function eventsOf(given: string): readonly string[] {
  if (given === 'all') return MORE_EVENTS
  return given === 'none' || given === '' ? [] : given.split(',').map((type) => type.trim())
}
