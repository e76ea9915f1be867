import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { backUp } from '#backups/back-up.ts'
import { readBackup } from '#backups/backup-folder.ts'
import { verifyBackup } from '#backups/verify-backup.ts'
import { presentContext, type TestContext } from '../test/support/context.ts'
import { startTestDatabase, stopTestDatabase } from '../test/support/database.ts'
import { aCustomer, anApp, aPlan, paid, priceId } from '../test/support/factories.ts'
import { mapConcurrently } from '../test/support/map-concurrently.ts'
import { scratchFolder } from '../test/support/scratch.ts'

/**
 * Prints how long a backup takes to make and to verify, of subscriptions with a customer and one payment each. The first are paid; the others
 * are copies of their rows.
 *   node bench/backup.ts [<subscriptions>]
 */
const subscriptions = Number(process.argv[2] ?? 100_000)
const PAID = 500
/** Between the ids of two copies: more than the first ones have. */
const STEP = 100_000

interface Column {
  readonly tableName: string
  readonly name: string
  readonly type: string
}

/** References to what all subscriptions share. */
const SHARED = /^(app|plan|price|bank_account|account|provider_account)_id$/

/** Copies the rows of every table that grew with the subscriptions, with ids and unique texts of their own. */
async function multiply({ db }: TestContext, copies: number): Promise<void> {
  const columns: Column[] = await db.query(
    `SELECT table_name AS tableName, column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = DATABASE() AND extra NOT LIKE '%GENERATED%' ORDER BY table_name, ordinal_position`,
  )
  const keys: { key: string }[] = await db.query(
    `SELECT CONCAT(table_name, '.', column_name) AS \`key\` FROM information_schema.statistics
     WHERE table_schema = DATABASE() AND non_unique = 0 AND index_name <> 'PRIMARY'`,
  )
  const unique = new Set(keys.map(({ key }) => key))
  for (const [table, own] of Map.groupBy(columns, ({ tableName }) => tableName)) {
    const [{ count }]: [{ count: string }] = await db.query(`SELECT COUNT(*) AS count FROM ${table}`)
    if (Number(count) < PAID || table === 'commit_tokens') continue
    const names = own.map(({ name }) => `\`${name}\``).join(', ')
    for (let copy = 1; copy <= copies; copy += 1) {
      const values = own.map((column) => copied(column, unique.has(`${table}.${column.name}`), copy)).join(', ')
      await db.query(`INSERT INTO ${table} (${names}) SELECT ${values} FROM ${table} WHERE id < ${STEP}`)
    }
  }
}

function copied({ name, type }: Column, isUnique: boolean, copy: number): string {
  const column = `\`${name}\``
  if (type === 'bigint' && /(^|_)id$/.test(name) && !SHARED.test(name)) return `${column} + ${copy * STEP}`
  if ((!isUnique && name !== 'external_ref') || !/char|text/.test(type)) return column
  return `IF(${column} REGEXP '^[0-9a-f]{64}$', SHA2(CONCAT(${column}, '${copy}'), 256), CONCAT(${column}, '-${copy}'))`
}

await startTestDatabase()
try {
  const identity = await generateX25519Identity()
  const settings = {
    BILLING_BACKUP_DIR: scratchFolder('backups'),
    BILLING_BACKUP_RECIPIENT: await identityToRecipient(identity),
  }
  const ctx = presentContext(settings)
  const app = await anApp(ctx, { webhookUrl: 'https://seller.example/webhooks' })
  const price = priceId(await aPlan(ctx, app))
  await mapConcurrently([...Array(PAID).keys()], async (number) => {
    const customer = await aCustomer(ctx, app, { email: `customer-${number}@example.com` })
    await paid(ctx, app, { external_ref: `user-${number}`, price_id: price, customer_id: `cus_${customer.id}` })
  })
  await multiply(ctx, subscriptions / PAID - 1)
  const began = performance.now()
  const { file, bytes, manifest } = await backUp(ctx, { onProgress: () => undefined })
  const seconds = (performance.now() - began) / 1000
  const backup = await readBackup(file ?? '')
  if (!backup) throw new Error('there is no backup')
  const verified = await verifyBackup(ctx, backup, { identities: [identity], onStep: () => undefined })
  if (!verified.ok) throw new Error(JSON.stringify(verified.ledger.faults.slice(0, 5)))
  const rows = Object.values(manifest.rows).reduce((sum, count) => sum + count, 0)
  process.stdout.write(`${verified.ledger.checked} subscriptions, ${rows} rows, ${bytes} bytes\n`)
  process.stdout.write(`created in ${seconds.toFixed(1)} s, verified in ${verified.seconds.toFixed(1)} s\n`)
} finally {
  await stopTestDatabase()
}
