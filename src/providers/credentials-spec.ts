import { z } from 'zod'
import type { Config } from '#config/config.ts'

/** A prompt for one secret. */
export interface CredentialsQuestion<Field extends string = string> {
  readonly field: Field
  /** The environment variable that may hold it. */
  readonly variable: string
  /** The prompt on a terminal. */
  readonly message: string
}

/** Whether credentials work, with a sentence for the operator. */
export interface CredentialsCheck {
  readonly result: 'ok' | 'unreachable' | 'refused'
  readonly message: string
}

/** The credentials of a provider: secrets, stored encrypted as JSON. */
export interface CredentialsSpec {
  readonly schema: z.ZodType<Readonly<Record<string, string>>>
  readonly questions: readonly CredentialsQuestion[]
  /** Tries credentials at the provider. */
  check(config: Config, credentials: unknown): Promise<CredentialsCheck>
}

/** One secret as operators paste it. */
export const secretText = z.string().trim().min(1, 'must not be empty').max(500, 'is too long')

export function defineCredentials<Fields extends Record<string, string>>(spec: {
  readonly schema: z.ZodType<Fields>
  readonly questions: readonly CredentialsQuestion<keyof Fields & string>[]
  readonly check: (config: Config, credentials: Fields) => Promise<CredentialsCheck>
}): CredentialsSpec {
  return { ...spec, check: (config, credentials) => spec.check(config, spec.schema.parse(credentials)) }
}
