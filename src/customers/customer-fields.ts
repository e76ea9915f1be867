import { z } from 'zod'
import { LOCALES } from '#shared/locale.ts'
import { emailAddress, name, text } from '#shared/validate.ts'

const emailList = z.array(emailAddress).max(10, 'must contain at most 10 addresses')

/** The fields of a customer; null clears an optional one (R50). */
export const requiredFields = {
  name: name(191).describe("The customer's name, used in mails."),
  email: emailAddress.describe('Where reminders go.'),
}
export const optionalFields = {
  merchant_customer_id: text(191).nullish().describe('Your own id for the customer. It does not have to be unique.'),
  cc_emails: emailList.nullish().describe('Cc recipients of each mail.'),
  bcc_emails: emailList.nullish().describe('Bcc recipients of each mail.'),
  locale: z.enum(LOCALES, 'must be en or vi').nullish().describe('The language of mails and pages; `en` by default.'),
}
