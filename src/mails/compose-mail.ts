import { accentOnDark } from '#apps/accent.ts'
import type { App } from '#apps/store.ts'
import type { Config } from '#config/config.ts'
import { mailNameOf } from '#customers/mail-name.ts'
import type { Customer } from '#customers/store.ts'
import { renderMail, type MailTemplate, type MailValues } from '#mail/render.ts'
import type { Mail } from '#mail/mail.ts'
import { senderOf } from '#mail/open-mailer.ts'
import type { Locale } from '#shared/locale.ts'
import { sellerLinks } from '#words/seller-links.ts'

/** The default colours, as in `templates/pages/style.css`. */
const USUAL = { accent: '#1b5fc1', onDark: { accent: '#86b4ff', onAccent: '#0a1931' } } as const

/** The fields of an app that its mails show. */
export type Seller = Pick<App, 'name' | 'mailFrom' | 'pageSettings' | 'isSandbox'>
/** The fields of a customer that a mail needs. */
export type Receiver = Pick<
  Customer,
  'name' | 'email' | 'locale' | 'ccEmails' | 'bccEmails' | 'endUser' | 'emailVerified'
>

/** A mail of a seller to a customer: under the app's name, in its colours, in the customer's language. */
export async function composeMail(
  config: Config,
  app: Seller,
  customer: Receiver,
  content: {
    readonly template: MailTemplate
    readonly values: MailValues
    /** The part of the message id before `@`: the same for the same mail, so that a receiver recognizes a copy. */
    readonly id: string
    readonly headers?: Mail['headers']
  },
): Promise<Mail> {
  const from = senderOf(app, config)
  const name = mailNameOf(customer)
  const { template, id, headers } = content
  const brand = mailBrand(app, customer.locale, config.baseUrl)
  const common = { ...brand, is_test: app.isSandbox, app_name: app.name, customer_name: name }
  return {
    from,
    to: [{ name, address: customer.email }],
    cc: customer.ccEmails,
    bcc: customer.bccEmails,
    ...(await renderMail(template, customer.locale, { ...common, ...content.values })),
    messageId: `${id}@${from.address.split('@')[1] ?? 'localhost'}`,
    // Keeps out-of-office programs from replying.
    headers: { ...headers, 'Auto-Submitted': 'auto-generated' },
  }
}

/** The values of the seller's logo, colours and links in its mails in a language. A logo that is not set is empty. */
export function mailBrand({ pageSettings }: Pick<App, 'pageSettings'>, locale: Locale, baseUrl: string): MailValues {
  const { accent, logo } = pageSettings ?? {}
  const onDark = accent === undefined ? USUAL.onDark : accentOnDark(accent)
  return {
    accent: accent ?? USUAL.accent,
    accent_dark: onDark.accent,
    on_accent_dark: onDark.onAccent,
    logo: logo === undefined ? '' : `${baseUrl}/logo/${logo}`,
    links: sellerLinks(pageSettings, locale),
  }
}
