import { join } from 'node:path'

/** Where `npm run looks` puts its pictures; not under version control. */
export const LOOKS = join(import.meta.dirname, '../../var/looks')
