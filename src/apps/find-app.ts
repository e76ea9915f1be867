import type { Context } from '#context.ts'
import { found } from '#shared/errors.ts'
import { parseNumericId } from '#shared/ids.ts'
import { appsByKey, findApp, type App } from './store.ts'

/** The app with this id or api_key; throws `not_found`. */
export async function appNamed(ctx: Context, name: string): Promise<App> {
  const id = parseNumericId(name)
  const app = id === null ? await appsByKey.find(ctx.db, name) : await findApp(ctx.db, id)
  return found(app, `app "${name}"`)
}
