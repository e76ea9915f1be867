import { route, type AppRoute } from '#apps/authenticate.ts'
import { requireId } from '#shared/ids.ts'
import { createCustomer } from './create-customer.ts'
import { createOwnCustomer } from './create-own-customer.ts'
import { listCustomers } from './list-customers.ts'
import { CustomerOutput, presentCustomer } from './present.ts'
import { showCustomer } from './show-customer.ts'
import { updateCustomer } from './update-customer.ts'

export const customerRoutes: readonly AppRoute[] = [
  route.list({
    method: 'GET',
    path: '/api/v1/customers',
    access: 'hmac',
    item: CustomerOutput,
    list: (ctx, { caller, query }) => listCustomers(ctx, caller.appId, query),
    present: presentCustomer,
  }),
  route.query({
    method: 'GET',
    path: '/api/v1/customers/:id',
    access: 'hmac',
    output: CustomerOutput,
    query: async (ctx, { caller, params }) => showCustomer(ctx, caller.appId, customerId(params)),
  }),
  route.command({
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
