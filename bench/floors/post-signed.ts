import { createHmac } from 'node:crypto'
import { request, type Dispatcher } from 'undici'

export interface SignedPost {
  readonly url: string
  readonly secret: string
  readonly body: string
}

/** One webhook with one signature; throws if it is not acknowledged. */
export async function postSigned(dispatcher: Dispatcher, { url, secret, body }: SignedPost): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')
  const answer = await request(url, {
    dispatcher,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-gateway-timestamp': timestamp,
      'x-gateway-signature': signature,
    },
    body,
  })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
}
