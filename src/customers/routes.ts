import { route, type AppRoute } from '#apps/authenticate.ts'
import { requireId } from '#shared/ids.ts'
import { createCustomer, CreateCustomerInput } from './create-customer.ts'
import { createOwnCustomer } from './create-own-customer.ts'
import { listCustomers, ListCustomersQuery } from './list-customers.ts'
import { CustomerOutput, presentCustomer } from './present.ts'
import { showCustomer } from './show-customer.ts'
import { updateCustomer } from './update-customer.ts'

export const customerRoutes: readonly AppRoute[] = [
  route.list({
    id: 'listCustomers',
    summary: 'List customers',
    description: 'The customers of the app, newest first.',
    filter: ListCustomersQuery,
    method: 'GET',
    path: '/api/v1/customers',
    access: 'hmac',
    item: CustomerOutput,
    list: (ctx, { caller, query }) => listCustomers(ctx, caller.appId, query),
    present: presentCustomer,
  }),
  route.query({
    id: 'getCustomer',
    summary: 'Get a customer',
    description: 'One customer by its id.',
    method: 'GET',
    path: '/api/v1/customers/:id',
    access: 'hmac',
    output: CustomerOutput,
    query: async (ctx, { caller, params }) => showCustomer(ctx, caller.appId, customerId(params)),
  }),
  route.command({
    id: 'createCustomer',
    summary: 'Create a customer',
    description:
      "Creates a customer, who gets the reminders. A customer that an end user's client creates belongs to that end user: `cc_emails` and `bcc_emails` cannot be set, `email` must be the token's verified address if it has one, and an end user can have at most five.",
    body: CreateCustomerInput,
    method: 'POST',
    path: '/api/v1/customers',
    access: 'any',
    status: 201,
    command: ({ token }) => (token ? createOwnCustomer(token) : createCustomer),
    scope: ({ caller }) => ({ app: caller.app }),
    output: CustomerOutput,
    present: presentCustomer,
  }),
  route.command({
    id: 'updateCustomer',
    summary: 'Update a customer',
    description: 'Null empties a list, clears `merchant_customer_id` and sets `locale` to `en`.',
    method: 'PATCH',
    path: '/api/v1/customers/:id',
    access: 'hmac',
    command: updateCustomer,
    scope: ({ caller, params }) => ({ app: caller.app, customerId: customerId(params) }),
    output: CustomerOutput,
    present: presentCustomer,
  }),
]

function customerId(params: Readonly<Record<string, string>>): number {
  return requireId('cus', params['id'] ?? '')
}
