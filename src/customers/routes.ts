import type { AppRoute, Caller } from '#apps/authenticate.ts'
import { formatCursor } from '#http/page-of.ts'
import { commandRoute, type ApiRequest } from '#http/route.ts'
import { requireId } from '#shared/ids.ts'
import { createCustomer } from './create-customer.ts'
import { createOwnCustomer } from './create-own-customer.ts'
import { listCustomers } from './list-customers.ts'
import { presentCustomer } from './present.ts'
import { getCustomer } from './store.ts'
import { updateCustomer } from './update-customer.ts'

export const customerRoutes: readonly AppRoute[] = [
  {
    method: 'GET',
    path: '/api/v1/customers',
    access: 'hmac',
    async run(ctx, { caller, query }) {
      const { rows, next } = await listCustomers(ctx, caller.appId, query)
      return { data: rows.map(presentCustomer), nextCursor: formatCursor(next) }
    },
  },
  {
    method: 'GET',
    path: '/api/v1/customers/:id',
    access: 'hmac',
    async run(ctx, { caller, params }) {
      return { data: presentCustomer(await getCustomer(ctx.db, caller.appId, customerId(params))) }
    },
  },
  commandRoute({
    method: 'POST',
    path: '/api/v1/customers',
    access: 'any',
    run: (ctx, { caller, body }: ApiRequest<Caller>) =>
      caller.token ? createOwnCustomer(ctx, caller.app, caller.token, body) : createCustomer(ctx, caller.app, body),
    answer: (_ctx, _request, customer) => ({ status: 201, data: presentCustomer(customer) }),
  }),
  {
    method: 'PATCH',
    path: '/api/v1/customers/:id',
    access: 'hmac',
    async run(ctx, { caller, params, body }) {
      return { data: presentCustomer(await updateCustomer(ctx, caller.app, customerId(params), body)) }
    },
  },
]

function customerId(params: Readonly<Record<string, string>>): number {
  return requireId('cus', params['id'] ?? '')
}
