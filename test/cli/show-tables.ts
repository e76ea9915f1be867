import { formatFields, formatTable } from '#cli/table.ts'

/** Prints a table and fields, for `table.test.ts`. */
export const HEAD = ['id', 'external_ref', 'status', 'amount', 'method', 'created_at', 'reference']
export const ROWS = [
  [1041, 'user-42', 'completed', '99,000 VND', 'bank_transfer', '2026-11-21 03:16:16', 'ACB FT2632588774120001'],
  [1042, 'Nguyễn Văn An', 'pending', '290,000 VND', 'card', '2026-11-22 10:00:00', 'cs_test_a1B2c3D4e5F6g7H8i9J0'],
]

if (process.argv[1] === import.meta.filename) {
  process.stdout.write(`${formatTable({ head: HEAD, rows: ROWS, none: '' })}\n`)
  process.stdout.write(`${formatFields({ name: 'Reader', secret: 'sk_0123456789abcdef0123456789abcdef' })}\n`)
}
