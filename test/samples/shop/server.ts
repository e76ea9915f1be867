// server.ts
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { WebhookError } from 'paygate-client'
import { openCheckout } from './checkout.ts'
import { catchUp, handle } from './events.ts'
import { now, parseTime, paygate, setting } from './paygate.ts'
import { state } from './store.ts'

const secret = setting('WEBHOOK_SECRET')

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
    case 'GET /premium': {
      const end = state.paidUntil[searchParams.get('user') ?? '']
      const isPaid = end === null || (end !== undefined && (await now()) < parseTime(end))
      response.writeHead(isPaid ? 200 : 402).end(isPaid ? `premium until ${end ?? 'ever'}\n` : 'not paid\n')
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
}).listen(4242, '127.0.0.1')

await catchUp()
console.log('caught up')
