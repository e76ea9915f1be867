import { z } from 'zod'
import { MethodAccounts } from '#providers/accounts.ts'
import { secretText } from '#providers/credentials-spec.ts'

/** The credentials of a merchant's account at PayOS. */
export const PayosCredentials = z.strictObject({ clientId: secretText, apiKey: secretText, checksumKey: secretText })
export type PayosCredentials = z.infer<typeof PayosCredentials>

export const payosAccounts = new MethodAccounts('payos', PayosCredentials)
