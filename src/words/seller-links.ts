import type { PageSettings } from '#apps/page-settings.ts'
import type { Locale } from '#shared/locale.ts'

/** A link of a seller's pages and mails. */
export interface SellerLink {
  readonly label: string
  readonly href: string
  /** What plain text has for it: an e-mail address goes without `mailto:`. */
  readonly text: string
}

const LABELS = {
  en: { support: 'Help', terms: 'Terms', privacy: 'Privacy' },
  vi: { support: 'Hỗ trợ', terms: 'Điều khoản', privacy: 'Quyền riêng tư' },
} as const

/** The links that a seller has set, in the order in which its pages and mails show them. */
export function sellerLinks(settings: PageSettings | null, locale: Locale): SellerLink[] {
  const { support, terms_url: terms, privacy_url: privacy } = settings ?? {}
  const labels = LABELS[locale]
  return [
    ...(support === undefined ? [] : [{ label: labels.support, href: contactLink(support), text: support }]),
    ...(terms === undefined ? [] : [{ label: labels.terms, href: terms, text: terms }]),
    ...(privacy === undefined ? [] : [{ label: labels.privacy, href: privacy, text: privacy }]),
  ]
}

/** Leads to a seller's contact, which is a web page or an e-mail address; a mail gets the subject. */
export function contactLink(contact: string, subject?: string): string {
  if (contact.includes('://')) return contact
  // A local part may have characters that end an address in a link: `?`, `&`, `#`, `%`.
  const [localPart = '', domain = ''] = contact.split('@')
  const link = `mailto:${encodeURIComponent(localPart)}@${domain}`
  return subject === undefined ? link : `${link}?subject=${subject}`
}
