import { z } from 'zod'

/**
 * The path of an end user's node in an app's realtime database, such as `users/{uid}/subscription`. It contains `{uid}` once, as a key or
 * as part of one; the other characters are those that the database allows in keys.
 */
export const realtimePath = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine((path) => path.split('{uid}').length === 2, 'must contain {uid} once')
  .refine(
    (path) => path.replace('{uid}', 'u').split('/').every(isKey),
    'must be keys separated by single slashes, without . $ # [ ]',
  )
  // The database allows a depth of 32, and the node adds one level.
  .refine((path) => path.split('/').length <= 31, 'must have at most 31 keys')

function isKey(segment: string): boolean {
  return segment !== '' && !/[.$#[\]{}\p{Cc}]/u.test(segment)
}
