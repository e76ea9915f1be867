import { mapConcurrently } from '../test/support/map-concurrently.ts'
import { presentContext } from '../test/support/context.ts'
import { startTestDatabase, stopTestDatabase } from '../test/support/database.ts'
import { aCustomer, anApp, aPlan, paid, priceId } from '../test/support/factories.ts'

/**
 * Prints what a subscription takes in the database: its customer, one payment and all that is kept of it.
 *   node bench/bytes-per-subscription.ts [<subscriptions>]
 */
const subscriptions = Number(process.argv[2] ?? 100_000)

await startTestDatabase()
try {
  const ctx = presentContext()
  const app = await anApp(ctx, { webhookUrl: 'https://seller.example/webhooks' })
  const price = priceId(await aPlan(ctx, app))
  const numbers = Array.from({ length: subscriptions }, (_, number) => number)
  await mapConcurrently(numbers, async (number) => {
    const customer = await aCustomer(ctx, app, { email: `customer-${number}@example.com` })
    await paid(ctx, app, { external_ref: `user-${number}`, price_id: price, customer_id: `cus_${customer.id}` })
  })
  const tables: { name: string }[] = await ctx.db.query(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'`,
  )
  for (const { name } of tables) await ctx.db.query(`OPTIMIZE TABLE ${name}`)
  for (const { name } of tables) await ctx.db.query(`ANALYZE TABLE ${name}`)
  const sizes: { name: string; n: string; bytes: string }[] = await ctx.db.query(
    `SELECT table_name AS name, table_rows AS n, data_length + index_length AS bytes FROM information_schema.tables
     WHERE table_schema = DATABASE() ORDER BY bytes DESC`,
  )
  // Empty tables have pages, too; the servers' counts of rows are estimates.
  const filled = sizes.filter(({ n }) => Number(n) > subscriptions / 2)
  const each = filled.map(({ name, bytes }) => ({ name, bytes: Math.round(Number(bytes) / subscriptions) }))
  for (const { name, bytes } of each) process.stdout.write(`${name}: ${bytes} bytes\n`)
  process.stdout.write(`a subscription: ${each.reduce((sum, { bytes }) => sum + bytes, 0)} bytes\n`)
} finally {
  await stopTestDatabase()
}
