import { requireId } from '#shared/ids.ts'
import { required } from './ask.ts'
import type { Commands } from './declaration.ts'
import { listOfApp, type OfApp } from './list.ts'
import { printOf } from './session.ts'

/** `customer …`: the people who receive reminders. */
export const commands: Commands = {
  'customer list [app]': listOfApp({
    description: "an app's customers, newest first",
    options: [
      ['--email <address>', 'only of this address'],
      ['--merchant-customer-id <id>', 'only those with this merchant_customer_id'],
    ],
    examples: ['customer list 1', 'customer list 1 --email an@example.com'],
    async page({ ctx, app, options }: OfApp<{ email?: string; merchantCustomerId?: string }>, query) {
      const { listCustomers } = await import('#customers/list-customers.ts')
      const { presentCustomer } = await import('#customers/present.ts')
      const { presentPage } = await import('#http/list-page.ts')
      const filter = { email: options.email, merchant_customer_id: options.merchantCustomerId }
      return presentPage(await listCustomers(ctx, app.id, { ...filter, ...query }), presentCustomer)
    },
    columns: () => [
      ['id', (row) => row.id],
      ['name', (row) => row.name],
      ['email', (row) => row.email],
      ['merchant id', (row) => row.merchant_customer_id],
      ['locale', (row) => row.locale],
    ],
    none: () => 'no customers',
    optional: ['locale', 'merchant id'],
  }),
  'customer show [app] [customer_id]': {
    description: 'one customer',
    examples: ['customer show 1 cus_5'],
    async run({ ctx, out, pickApp }, [named, customerId]) {
      const { showCustomer } = await import('#customers/show-customer.ts')
      const app = await pickApp(named)
      const id = requireId('cus', await required(customerId, '<customer_id>'))
      printOf(out, app, await showCustomer(ctx, app.id, id))
    },
  },
}
