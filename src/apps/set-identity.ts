import { z } from 'zod'
import { command } from '#commands/command.ts'
import type { Config } from '#config/config.ts'
import { AppError } from '#shared/errors.ts'
import { text, webAddress } from '#shared/validate.ts'
import { isHttpsOrOwn } from '#shared/loopback.ts'
import { getApp, lockApp, updateAppRow, type App } from './store.ts'

const setIdentityInput = ({ env }: Config) => {
  const isDevelopment = env === 'development'
  return z.discriminatedUnion(
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
}

/** Sets who issues the identity tokens of an app's end users (R8). Throws `invalid_request`. */
export const setIdentity = command({
  name: 'app.set-identity',
  input: setIdentityInput,
  async run(tx, identity, { app: { id } }: { readonly app: App }) {
    const app = await lockApp(tx, id)
    if (app.auth !== 'identity') {
      throw new AppError(
        'invalid_request',
        'only identity-token apps have an identity provider: this one signs its requests',
      )
    }
    await updateAppRow(tx, app.id, { identity })
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, before: { identity: app.identity }, after: { identity } })
    return getApp(tx, app.id)
  },
})
