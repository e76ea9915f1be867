import { z } from 'zod'
import { secretText } from '#providers/credentials-spec.ts'

/** What a merchant's account at PayOS is used with. */
export const PayosCredentials = z.strictObject({ clientId: secretText, apiKey: secretText, checksumKey: secretText })
export type PayosCredentials = z.infer<typeof PayosCredentials>
