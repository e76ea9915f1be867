import type { Recipient } from 'age-encryption'
import type { Family } from '#embedded/setup.ts'
import { asRealTime, type RealTime } from '#shared/time.ts'

/** The part of a backup that can be read without its key. */
export interface Label {
  readonly takenAt: RealTime
  /** The newest migration of the database. */
  readonly schema: string
  readonly family: Family
}

/** Longer than any header of ours. */
export const HEADER_BYTES = 16_384
const FIRST_LINE = 'age-encryption.org/v1\n'
const STANZA = /^-> paygate-backup-v1 (\S+) (\S+) (MariaDB|MySQL)$/m

/**
 * The label as a part of the file's header, which the header's authentication covers. Programs that know only age skip a stanza of an
 * unknown kind, as the format asks them to.
 */
export async function labelling({ takenAt, schema, family }: Label): Promise<Recipient> {
  const { Stanza } = await import('age-encryption')
  const stanza = new Stanza(['paygate-backup-v1', takenAt.toISOString(), schema, family], new Uint8Array(0))
  return { wrapFileKey: () => [stanza] }
}

/** The label in the first bytes of a file; null for any other file. */
export function labelIn(header: Buffer): Label | null {
  const text = header.toString('latin1')
  const [, takenAt = '', schema = '', family] = STANZA.exec(text.slice(0, Math.max(0, text.indexOf('\n---')))) ?? []
  const instant = new Date(takenAt)
  if (!text.startsWith(FIRST_LINE) || family === undefined || Number.isNaN(instant.getTime())) return null
  return { takenAt: asRealTime(instant), schema, family: family as Family }
}
