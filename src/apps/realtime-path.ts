import { z } from 'zod'

/**
 * Where an app's realtime database keeps the node of an end user: `users/{uid}/subscription`. Holds `{uid}` once, in a segment of
 * its own or as part of one; the other characters are those that the database allows in keys.
 */
export const realtimePath = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine((path) => path.split('{uid}').length === 2, 'must hold {uid} once')
  .refine(
    (path) => path.replace('{uid}', 'u').split('/').every(isKey),
    'must be keys parted by single slashes, without . $ # [ ]',
  )
  // The database nests 32 deep, and the node has keys of its own.
  .refine((path) => path.split('/').length <= 31, 'must have at most 31 keys')

function isKey(segment: string): boolean {
  return segment !== '' && !/[.$#[\]{}\p{Cc}]/u.test(segment)
}
