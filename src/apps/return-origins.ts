import { z } from 'zod'
import { isHttpsOrOwn } from '#shared/loopback.ts'

const MAX_ORIGINS = 20

/** Origins as browsers write them, without duplicates; the error names the first invalid one (R14). */
export function returnOrigins(isDevelopment: boolean): z.ZodType<string[]> {
  return z
    .array(z.string().max(300, 'must have at most 300 characters'))
    .min(1, 'must contain at least one origin')
    .max(MAX_ORIGINS, `must contain at most ${MAX_ORIGINS} origins`)
    .transform((given, check) => {
      const origins = given.map((value) => originOf(value, isDevelopment))
      const wrong = given.find((_, index) => origins[index] === null)
      if (wrong === undefined) return [...new Set(origins.filter((origin) => origin !== null))]
      const schemes = isDevelopment ? 'https (http on loopback)' : 'https'
      check.addIssue(`"${wrong}" is not an origin: write ${schemes}://host[:port], without a path`)
      return z.NEVER
    })
}

/** Null for anything else than scheme, host and port: an address with a path would seem to allow only that path. */
function originOf(value: string, isDevelopment: boolean): string | null {
  if (!/^https?:\/\/[^\s/\\?#@*]+$/i.test(value) || !URL.canParse(value)) return null
  const url = new URL(value)
  return isHttpsOrOwn(url, isDevelopment) ? url.origin : null
}
