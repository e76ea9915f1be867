import { z } from 'zod'
import type { Config } from '#config.ts'

/** One secret that an operator gives. */
export interface Question<Field extends string = string> {
  readonly field: Field
  /** The environment variable that answers it. */
  readonly variable: string
  /** What is asked on a terminal. */
  readonly message: string
}

/** Whether credentials work, in a sentence for the operator who gives them. */
export interface CredentialsCheck {
  readonly result: 'ok' | 'unreachable' | 'refused'
  readonly message: string
}

/** What a provider must know to work for an app: secrets, sealed as JSON. */
export interface CredentialsSpec {
  readonly schema: z.ZodType<Readonly<Record<string, string>>>
  readonly questions: readonly Question[]
  /** Tries credentials of the schema at the provider. */
  check(config: Config, credentials: unknown): Promise<CredentialsCheck>
}

/** One secret as operators paste it. */
export const secretText = z.string().trim().min(1, 'must not be empty').max(500, 'is too long')

export function defineCredentials<Fields extends Record<string, string>>(spec: {
  readonly schema: z.ZodType<Fields>
  readonly questions: readonly Question<keyof Fields & string>[]
  readonly check: (config: Config, credentials: Fields) => Promise<CredentialsCheck>
}): CredentialsSpec {
  return { ...spec, check: (config, credentials) => spec.check(config, spec.schema.parse(credentials)) }
}
