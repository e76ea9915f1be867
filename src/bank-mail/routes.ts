import Router, { type RouterContext } from '@koa/router'
import type { Context } from '#context.ts'
import { errorBody, type RequestState } from '#http/errors.ts'
import { notificationBody, parseContent, unverified } from '#providers/notification-content.ts'
import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { isTimely } from '#shared/signed-time.ts'
import { deferMail } from './defer-mail.ts'
import { RELAY_BODY_BYTES, RELAY_PATH } from './endpoint.ts'
import { readEnvelope } from './envelope.ts'
import { MailNotRead, type MailReader } from './mail-reader.ts'
import { receiveMail } from './receive-mail.ts'

/**
 * The endpoint to which the bank-mail relay posts mails (R193, R200). Answers 400 to anything but a signed mail, and 200 with `{status,
 * reason?}` for every decision. Answers 5xx for errors on our side, so that the relay keeps the mail, and 404 without a relay secret.
 */
export function bankMailRoutes(ctx: Context, reader: MailReader): Router<RequestState> {
  const router = new Router<RequestState>()
  const { secret } = ctx.config.relay
  if (secret === null) return router
  router.post(RELAY_PATH, async (http) => {
    const body = await notificationBody(http.req, RELAY_BODY_BYTES)
    requireSignature(ctx, secret, http, body)
    const mail = readEnvelope(parseContent(body))
    const reading = await reader.read(mail.raw).catch(asNotRead)
    const answer =
      reading instanceof MailNotRead
        ? await deferMail(ctx, mail, reading)
        : await receiveMail(ctx, { ...mail, reading })
    if (answer.status === 'deferred') sendLater(http)
    else http.body = answer
  })
  return router
}

function asNotRead(thrown: unknown): MailNotRead {
  if (thrown instanceof MailNotRead) return thrown
  throw thrown
}

/** 503, so that the relay keeps the mail and sends it again. */
function sendLater(http: RouterContext<RequestState>): void {
  const headers = { 'Retry-After': '60' }
  const error = new AppError('service_unavailable', 'the mail could not be read now; send it again', { headers })
  http.status = error.status
  http.set(error.headers)
  http.body = errorBody(error, http.state.requestId)
}

/** `X-Signature` is the hex HMAC-SHA256 of `{timestamp}.{raw body}`; `X-Timestamp` is within 300 s of the real time, either way. */
function requireSignature(ctx: Context, secret: string, http: RouterContext<RequestState>, body: Buffer): void {
  const { 'x-timestamp': timestamp, 'x-signature': signature } = http.req.headers
  if (typeof timestamp !== 'string' || typeof signature !== 'string') throw unverified()
  const isSigned = constantTimeEqual(signature, hmacHex(secret, `${timestamp}.`, body))
  if (!isSigned || !isTimely(timestamp, ctx.clock.now())) throw unverified()
}
