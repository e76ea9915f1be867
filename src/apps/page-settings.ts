import { z } from 'zod'

/** What an app says about its pages and mails; what is absent has its default. */
export interface PageSettings {
  /** IANA name of the zone that payers' dates are in. */
  readonly time_zone?: string
  /** Whether the bank page links to banking apps, through vietqr.io; it does by default. */
  readonly bank_app_links?: boolean
}

/** What `app update` takes of them; null restores a default. */
export const pageSettingsInput = {
  time_zone: z.string().refine(isTimeZone, 'must be a time zone such as Asia/Ho_Chi_Minh or Europe/Berlin').nullish(),
  bank_app_links: z.boolean().nullish(),
}
export type PageSettingsInput = z.infer<z.ZodObject<typeof pageSettingsInput>>

/** The settings after a change; null where every one has its default. */
export function changeSettings(settings: PageSettings | null, changes: PageSettingsInput): PageSettings | null {
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
