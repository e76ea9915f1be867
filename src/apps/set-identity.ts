import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { AppError } from '#shared/errors.ts'
import { text, validate, webAddress } from '#shared/validate.ts'
import { isHttpsOrOwn } from '#shared/loopback.ts'
import { getApp, updateAppRow, type App } from './store.ts'

const setIdentityInput = (isDevelopment: boolean) =>
  z.discriminatedUnion(
    'provider',
    [
      z.strictObject({
        provider: z.literal('firebase'),
        projectId: z.string().regex(/^[a-z0-9][a-z0-9.:-]{2,99}$/, 'must be the id of a Firebase project'),
      }),
      z.strictObject({
        provider: z.literal('oidc'),
        issuer: text(512),
        audience: text(512),
        jwksUrl: webAddress.refine(
          (value) => URL.canParse(value) && isHttpsOrOwn(new URL(value), isDevelopment),
          isDevelopment ? 'must be https (http on loopback)' : 'must be https',
        ),
      }),
    ],
    'must be firebase or oidc',
  )

/** Says who issues the identity tokens of an app's end users (contract 2). Throws `invalid_request`. */
export async function setIdentity(ctx: Context, actor: string, app: App, input: unknown): Promise<App> {
  if (app.auth !== 'identity') {
    throw new AppError(
      'invalid_request',
      'only identity-token apps have an identity provider: this one signs its requests',
    )
  }
  const identity = validate(setIdentityInput(ctx.config.env === 'development'), input)
  return inTransaction(ctx, async (tx) => {
    await updateAppRow(tx, app.id, { identity })
    await recordAudit(tx, {
      actor,
      action: 'app.set-identity',
      appId: app.id,
      subject: `app ${app.id}`,
      before: { identity: app.identity },
      after: { identity },
    })
    return getApp(tx, app.id)
  })
}
