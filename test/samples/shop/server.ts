// server.ts
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { hasAccess, WebhookError } from 'paygate-client'
import { openCheckout, openPurchase } from './checkout.ts'
import { followEvents, handle } from './events.ts'
import { now, paygate, setting } from './paygate.ts'
import { state } from './store.ts'

const secret = setting('PAYGATE_WEBHOOK_SECRET')

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop')
  switch (`${request.method ?? ''} ${pathname}`) {
    case 'POST /hooks': {
      const event = await paygate.webhooks.verify(await buffer(request), request.headers, secret)
      await handle(event)
      response.writeHead(204).end()
      return
    }
    case 'POST /subscribe': {
      // Your own login says who it is.
      const form = new URLSearchParams(await text(request))
      const location = await openCheckout(form.get('user') ?? '', form.get('email') ?? '', form.get('unit') ?? 'month')
      response.writeHead(303, { location }).end()
      return
    }
    case 'POST /buy': {
      const form = new URLSearchParams(await text(request))
      response.writeHead(303, { location: await openPurchase(form.get('user') ?? '') }).end()
      return
    }
    case 'GET /premium': {
      const subscription = state.subscriptions[searchParams.get('user') ?? '']
      const isPaid = hasAccess(subscription, await now())
      const end = subscription?.current_period_end ?? 'ever'
      response.writeHead(isPaid ? 200 : 402).end(isPaid ? `premium until ${end}\n` : 'not paid\n')
      return
    }
    case 'GET /order': {
      response.end(`${state.orders[searchParams.get('id') ?? '']?.status ?? 'unknown'}\n`)
      return
    }
    default:
      response.writeHead(404).end()
  }
}

createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    console.error(error)
    response.writeHead(error instanceof WebhookError ? 400 : 500).end()
  })
}).listen(4242, '127.0.0.1', () => console.log('the shop is open'))

// What Paygate refuses ends the process, which your process manager starts again.
await followEvents()
