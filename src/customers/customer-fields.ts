import { z } from 'zod'
import { emailAddress, text } from '#shared/validate.ts'

const emailList = z.array(emailAddress).max(10, 'must hold at most 10 addresses')

/** The languages of mails and pages. */
export const LOCALES = ['en', 'vi'] as const

/** What a customer must have, and what null clears (contract 3, Customers). */
export const requiredFields = { name: text(191), email: emailAddress }
export const optionalFields = {
  merchant_customer_id: text(191).nullish(),
  cc_emails: emailList.nullish(),
  bcc_emails: emailList.nullish(),
  locale: z.enum(LOCALES, 'must be en or vi').nullish(),
}
