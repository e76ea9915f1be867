/** The languages of mails and pages (R50). */
export const LOCALES = ['en', 'vi'] as const
export type Locale = (typeof LOCALES)[number]
