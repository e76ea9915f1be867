import { accentOnDark } from '#apps/accent.ts'
import type { App } from '#apps/store.ts'
import type { MailValues } from '#mail/render.ts'

/** The default colours, as in `templates/pages/style.css`. */
const USUAL = { accent: '#1b5fc1', onDark: { accent: '#86b4ff', onAccent: '#0a1931' } } as const

/** The values of the seller's colours and links in its mails. A link that is not set is empty. */
export function mailBrand({ pageSettings }: Pick<App, 'pageSettings'>): MailValues {
  const { accent, support = '', terms_url: terms = '', privacy_url: privacy = '' } = pageSettings ?? {}
  const isAddress = support !== '' && !support.includes('://')
  const onDark = accent === undefined ? USUAL.onDark : accentOnDark(accent)
  return {
    accent: accent ?? USUAL.accent,
    accent_dark: onDark.accent,
    on_accent_dark: onDark.onAccent,
    support: isAddress ? `mailto:${support}` : support,
    support_shown: support,
    terms,
    privacy,
  }
}
