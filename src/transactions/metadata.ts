import { z } from 'zod'
import { longText } from '#shared/validate.ts'

/** Data that a seller stores with a transaction: names and texts that mean nothing to Paygate. */
export type Metadata = Readonly<Record<string, string>>

const MAX_KEYS = 20
const KEY = /^[A-Za-z0-9_.-]{1,40}$/
const value = longText(500)

const shown = {
  type: 'object',
  maxProperties: MAX_KEYS,
  propertyNames: { pattern: KEY.source },
  additionalProperties: { type: 'string', maxLength: 500 },
} as const

/** Checked here rather than by `z.record`, which silently drops the key `__proto__`. */
export const metadataInput = z
  .unknown()
  .superRefine((given, issues) => {
    const fail = (path: string[], message: string): void => issues.addIssue({ code: 'custom', path, message })
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      fail([], 'must be an object')
      return
    }
    const entries = Object.entries(given)
    for (const [key, text] of entries) {
      if (!KEY.test(key)) fail([key], 'must have a name of 1 to 40 characters of A-Z, a-z, 0-9, _, . and -')
      const [issue] = value.safeParse(text).error?.issues ?? []
      if (issue) fail([key], issue.code === 'invalid_type' ? 'must be a text' : issue.message)
    }
    const [extra] = entries[MAX_KEYS] ?? []
    if (extra !== undefined) fail([extra], `is one more than ${MAX_KEYS} keys`)
  })
  .meta(shown)
  .transform((given) => given as Metadata)

/** As callers read it; `{}` if there is none. */
export const metadataOutput = z
  .record(z.string(), z.string())
  .describe('What you gave when you opened the checkout; `{}` if nothing.')
