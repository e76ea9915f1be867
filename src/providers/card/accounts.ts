import { z } from 'zod'
import { MethodAccounts } from '#providers/accounts.ts'
import { secretText } from '#providers/credentials-spec.ts'

/** The credentials of an app's account at Stripe. */
export const CardCredentials = z.strictObject({ secretKey: secretText, webhookSecret: secretText })
export type CardCredentials = z.infer<typeof CardCredentials>

export const cardAccounts = new MethodAccounts('card', CardCredentials)
