import { z } from 'zod'
import { emailAddress, text, webAddress } from '#shared/validate.ts'
import { unreadable } from './accent.ts'

/** What an app says about its pages and mails; what is absent has its default. */
export interface PageSettings {
  /** IANA name of the zone that payers' dates are in. */
  readonly time_zone?: string
  /** Whether the bank page links to banking apps, through vietqr.io; it does by default. */
  readonly bank_app_links?: boolean
  /** `#rrggbb` of links and buttons; readable on light ground. */
  readonly accent?: string
  /** An e-mail address or a web page. */
  readonly support?: string
  readonly terms_url?: string
  readonly privacy_url?: string
  /** What the payment is called on a payer's card or bank statement. */
  readonly statement_name?: string
  /** Whether payers get a mail when money came or went back; they do not by default. */
  readonly receipts?: boolean
  /** SHA-256 of the logo, in hex. */
  readonly logo?: string
}

/** What `app update` takes of them; null restores a default. */
export const pageSettingsInput = {
  time_zone: z.string().refine(isTimeZone, 'must be a time zone such as Asia/Ho_Chi_Minh or Europe/Berlin').nullish(),
  bank_app_links: z.boolean().nullish(),
  accent: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, 'must be a colour such as #1b5fc1')
    .transform((colour) => colour.toLowerCase())
    .check(({ value, issues }) => {
      const fault = unreadable(value)
      if (fault)
        issues.push({
          code: 'custom',
          input: value,
          message: `has a contrast of ${fault.contrast.toFixed(1)} : 1 to the page, and 4.5 : 1 is needed to read it: the nearest such colour is ${fault.nearest}`,
        })
    })
    .nullish(),
  support: z.union([emailAddress, webAddress], 'must be an e-mail address or an absolute http(s) address').nullish(),
  terms_url: webAddress.nullish(),
  privacy_url: webAddress.nullish(),
  statement_name: text(40).nullish(),
  receipts: z.boolean().nullish(),
}
export type PageSettingsInput = z.infer<z.ZodObject<typeof pageSettingsInput>>

/** The settings after a change; null where every one has its default. */
export function changeSettings(
  settings: PageSettings | null,
  changes: PageSettingsInput & { readonly logo?: string | null },
): PageSettings | null {
  const known = Object.entries({ ...settings, ...changes }).filter(([, value]) => value !== null && value !== undefined)
  return known.length === 0 ? null : Object.fromEntries(known)
}

/** Who reads a page or a mail of an app: what dates and amounts are written for. */
export interface Reader {
  readonly locale: 'en' | 'vi'
  readonly timeZone: string
}

/** Vietnamese payers live in one zone; where others live nobody knows. */
const USUAL_ZONE = { en: 'UTC', vi: 'Asia/Ho_Chi_Minh' } as const

/** The reader of an app's page or mail in a language. */
export function readerOf(app: { readonly pageSettings: PageSettings | null }, locale: Reader['locale']): Reader {
  return { locale, timeZone: app.pageSettings?.time_zone ?? USUAL_ZONE[locale] }
}

function isTimeZone(name: string): boolean {
  // An offset such as +07:00 is taken by Intl too, and is no zone: it knows no summer time.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
