import { z } from 'zod'
import type { Locale } from '#shared/locale.ts'
import { given } from '#shared/patch.ts'
import { isTimeZone } from '#shared/time.ts'
import { emailAddress, name, webAddress } from '#shared/validate.ts'
import { unreadable } from './accent.ts'

/** An app's settings of its pages and mails; absent ones have their default. */
export interface PageSettings {
  /** IANA name of the time zone of the dates that payers see. */
  readonly time_zone?: string
  /** Whether the bank page links to banking apps, through vietqr.io; it does by default. */
  readonly bank_app_links?: boolean
  /** `#rrggbb` of links and buttons, with enough contrast on a light background. */
  readonly accent?: string
  /** An e-mail address or a web page. */
  readonly support?: string
  readonly terms_url?: string
  readonly privacy_url?: string
  /** The name of the payment on the payer's card or bank statement. */
  readonly statement_name?: string
  /** Whether payers get a mail when money arrived or was refunded; off by default. */
  readonly receipts?: boolean
  /** SHA-256 of the logo, in hex. */
  readonly logo?: string
}

/** The input of `app update` for these settings; null restores a default. */
export const pageSettingsInput = {
  time_zone: z.string().refine(isNamedZone, 'must be a time zone such as Asia/Ho_Chi_Minh or Europe/Berlin').nullish(),
  bank_app_links: z.boolean().nullish(),
  accent: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, 'must be a colour such as #1b5fc1')
    .transform((colour) => colour.toLowerCase())
    .check(({ value, issues }) => {
      const problem = unreadable(value)
      if (problem)
        issues.push({
          code: 'custom',
          input: value,
          message: `has a contrast of ${problem.contrast.toFixed(1)} : 1 to the page, and 4.5 : 1 is needed to read it: the nearest such colour is ${problem.nearest}`,
        })
    })
    .nullish(),
  support: z.union([emailAddress, webAddress], 'must be an e-mail address or an absolute http(s) address').nullish(),
  terms_url: webAddress.nullish(),
  privacy_url: webAddress.nullish(),
  statement_name: name(40).nullish(),
  receipts: z.boolean().nullish(),
}
export type PageSettingsInput = z.infer<z.ZodObject<typeof pageSettingsInput>>

/** Separates the given page settings from the other fields. */
export function takeSettings<Fields extends PageSettingsInput>(fields: Fields) {
  const { time_zone, bank_app_links, accent, support, terms_url, privacy_url, statement_name, receipts, ...others } =
    fields
  const settings = { time_zone, bank_app_links, accent, support, terms_url, privacy_url, statement_name, receipts }
  return { settings: given(settings), others }
}

/** The settings after a change; null if all have their default. */
export function changeSettings(
  settings: PageSettings | null,
  changes: PageSettingsInput & { readonly logo?: string | null },
): PageSettings | null {
  const known = Object.entries({ ...settings, ...changes }).filter(([, value]) => value !== null && value !== undefined)
  return known.length === 0 ? null : Object.fromEntries(known)
}

/** The reader of a page or a mail, whose language and zone dates and amounts are written in. */
export interface Reader {
  readonly locale: Locale
  readonly timeZone: string
}

/** Vietnam has one time zone; where other payers live is unknown. */
const USUAL_ZONE = { en: 'UTC', vi: 'Asia/Ho_Chi_Minh' } as const

/** The reader of an app's page or mail in a language. */
export function readerOf(app: { readonly pageSettings: PageSettings | null }, locale: Locale): Reader {
  return { locale, timeZone: app.pageSettings?.time_zone ?? USUAL_ZONE[locale] }
}

function isNamedZone(name: string): boolean {
  // An offset such as +07:00 is not a zone: it has no daylight saving time.
  return /^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/.test(name) && isTimeZone(name)
}
