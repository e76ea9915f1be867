import { z } from 'zod'
import { AppError, invalidField } from '#shared/errors.ts'
import type { IdKind } from '#shared/ids.ts'
import { asAppTime, parseAppTime } from '#shared/time.ts'

/** Line separators, and characters that embed, override or isolate text direction. Plain marks are allowed: right-to-left names need them. */
const DIRECTION_CONTROLS = /[\u061c\u2028-\u202e\u2066-\u2069]/

/** A string of 1 to `max` characters (code points, as the database counts them), without control characters. */
export function text(max: number): z.ZodType<string> {
  return z
    .string()
    .refine((value) => value.trim().length >= 1, 'must not be empty')
    .refine((value) => countCharacters(value) <= max, `must have at most ${max} characters`)
    .refine(isStorable, 'must not contain control characters or unpaired surrogates')
    .meta({ minLength: 1, maxLength: max })
}

/** A seller's own id for an end user. Paths of the API name it, and URLs resolve `.` and `..`, encoded ones too. */
export const externalRef = text(191).refine((value) => value !== '.' && value !== '..', 'must not be . or ..')

/** As `text`, for what payers and operators read beside other words, whose order it must not change. */
export function name(max: number): z.ZodType<string> {
  return text(max).refine(
    (value) => !DIRECTION_CONTROLS.test(value),
    'must not contain line separators or characters that change the direction of text',
  )
}

/** As `text`, but may be empty and may hold line breaks and tabs. */
export function longText(max: number): z.ZodType<string> {
  return z
    .string()
    .refine((value) => countCharacters(value) <= max, `must have at most ${max} characters`)
    .refine(
      (value) => isStorable(value.replace(/[\r\n\t]/g, '')),
      'must not contain control characters or unpaired surrogates',
    )
    .meta({ maxLength: max })
}

/** An integer from `min` to the largest safe integer, or to `max`. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> {
  return z
    .number('must be a whole number')
    .refine((value) => Number.isSafeInteger(value), 'must be a whole number of at most 9007199254740991')
    .refine((value) => value >= min, min === 1 ? 'must be at least 1' : `must be at least ${min}`)
    .refine((value) => value <= max, `must be at most ${max}`)
    .meta({ type: 'integer', minimum: min, maximum: max })
}

export const currencyCode = z
  .string()
  .regex(/^[A-Za-z]{3}$/, 'must be 3 letters')
  .transform((value) => value.toUpperCase())

/**
 * A dot-atom before the @ (RFC 5322, 3.2.3), a host name with a dot after it, whose last label is letters or the ASCII form of another
 * script. zod's own pattern refuses `&` and others.
 */
const EMAIL_ADDRESS =
  /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+(?:[A-Za-z]{2,63}|[Xx][Nn]--[A-Za-z0-9-]{0,58}[A-Za-z0-9])$/

/** One e-mail address without display name, comment or quotes. */
export const emailAddress = z
  .email({ pattern: EMAIL_ADDRESS, error: 'must be one e-mail address' })
  .refine((value) => value.length <= 254, 'is too long')
  .meta({ maxLength: 254 })

/** An absolute http or https address with a host (RFC 9110, 4.2.1), of at most 2048 characters, without user and password in it. */
export const webAddress = z
  .string()
  .max(2048, 'must have at most 2048 characters')
  .refine((value) => /^https?:\/\/[^/\\]/i.test(value) && URL.canParse(value), 'must be an absolute http(s) address')
  .refine((value) => !hasCredentials(value), 'must not contain a user name or password')
  .refine(isStorable, 'must not contain control characters or unpaired surrogates')
  .meta({ format: 'uri', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/\\\\]' })

/** An identifier in an answer: `plan_12`. */
export function publicId(kind: IdKind): z.ZodString {
  return z.string().meta({ pattern: `^${kind}_[1-9][0-9]*$`, examples: [`${kind}_1`] })
}

/** A time in an answer: `YYYY-MM-DD HH:MM:SS`, in UTC. */
export const timestamp = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  .meta({ examples: ['2026-12-01 09:30:00'] })

/** A time that a caller gives, in the app's own time. */
export const givenTime = z
  .string()
  .refine((value) => parseAppTime(value) !== null, 'must be a time YYYY-MM-DD HH:MM:SS in UTC')
  .meta({ pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d$', examples: ['2026-12-01 09:30:00'] })
  .transform((value) => asAppTime(new Date(`${value.replace(' ', 'T')}Z`)))

/** The checked input. Throws 400 `invalid_request` with the dotted path of the first invalid field. */
export function validate<T extends z.ZodType>(schema: T, input: unknown): z.infer<T> {
  const result = schema.safeParse(input, { reportInput: true })
  if (result.success) return result.data
  const issue = result.error.issues[0]
  if (!issue) throw new AppError('invalid_request', 'the request is not valid')
  throw errorOf(issue)
}

function errorOf(issue: z.core.$ZodIssue): AppError {
  const path = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') {
    return invalidField([...path, issue.keys[0] ?? ''].join('.'), 'is not a field of this request')
  }
  if (path.length > 0 && 'input' in issue && issue.input === undefined)
    return invalidField(path.join('.'), 'is required')
  if (path.length === 0) return new AppError('invalid_request', `the body ${bodyRule(issue)}`)
  return invalidField(path.join('.'), ruleOf(issue))
}

function bodyRule(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_type' ? 'must be a JSON object' : issue.message
}

function ruleOf(issue: z.core.$ZodIssue): string {
  return issue.message.replace(/^Invalid (input|option): expected /, 'must be ').replace(/, received .*$/, '')
}

function countCharacters(value: string): number {
  return Array.from(value).length
}

function isStorable(value: string): boolean {
  return value.isWellFormed() && !/\p{Cc}/u.test(value)
}

function hasCredentials(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { username, password } = new URL(value)
  return username !== '' || password !== ''
}
