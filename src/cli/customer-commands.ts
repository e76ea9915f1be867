import type { Command } from 'commander'
import { required } from './ask.ts'
import { withExamples } from './examples.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { banner, inSession } from './session.ts'

/** `customer …`: the people who receive reminders. */
export function registerCustomerCommands(program: Command): void {
  const customer = program.command('customer').description('the people who receive reminders')
  const list = customer
    .command('list [app]')
    .description("an app's customers, newest first")
    .option('--email <address>', 'only of this address')
    .option('--merchant-customer-id <id>', 'only those with this merchant_customer_id')
    .action(
      async (
        named: string | undefined,
        options: PageOptions & { email?: string; merchantCustomerId?: string; limit: string },
        command: Command,
      ) => {
        const limit = readLimit(options.limit)
        await inSession(command, async ({ ctx, out, app: pick }) => {
          const [{ listCustomers }, { presentCustomer }] = await Promise.all([
            import('#customers/list-customers.ts'),
            import('#customers/present.ts'),
          ])
          const app = await pick(named)
          const filter = { email: options.email, merchant_customer_id: options.merchantCustomerId }
          const rows = await gatherRows(out, limit, options, (page) =>
            listCustomers(ctx, app.id, { ...filter, ...page }),
          )
          const shown = rows.map((row) => ({ app_id: app.id, sandbox: app.isSandbox, ...presentCustomer(row) }))
          out.result(shown, () => {
            out.line(banner(app))
            const cells = rows.map((row) => [`cus_${row.id}`, row.name, row.email, row.merchantCustomerId, row.locale])
            out.table({
              head: ['id', 'name', 'email', 'merchant id', 'locale'],
              rows: cells,
              none: 'no customers',
              optional: ['locale', 'merchant id'],
            })
          })
        })
      },
    )
  withPages(list)
  withExamples(list, 'customer list 1', 'customer list 1 --email an@example.com')
  const show = customer
    .command('show [app] [customer_id]')
    .description('one customer')
    .action(async (named: string | undefined, customerId: string | undefined, _options: object, command: Command) => {
      await inSession(command, async ({ ctx, out, app: pick }) => {
        const [{ showCustomer }, { requireId }] = await Promise.all([
          import('#customers/show-customer.ts'),
          import('#shared/ids.ts'),
        ])
        const app = await pick(named)
        const id = requireId('cus', await required(customerId, '<customer_id>'))
        const found = await showCustomer(ctx, app.id, id)
        out.result(found, () => {
          out.line(banner(app))
          out.fields(found)
        })
      })
    })
  withExamples(show, 'customer show 1 cus_5')
}
