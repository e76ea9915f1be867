import type { App } from '#apps/store.ts'
import { command, nothing } from '#commands/command.ts'
import { sandboxProvider } from '#providers/providers.ts'
import { AppError } from '#shared/errors.ts'
import { closeDemo, deleteDemo, hasOutsideMoney } from './store.ts'

export interface RemovedDemo {
  readonly app_id: number
  /** How many rows of each table. */
  readonly rows: Readonly<Record<string, number>>
}

/**
 * Removes the demo and all of its rows except those of the audit log, which gets an entry. Throws `forbidden` for any other app, and
 * `invalid_request` if it was used with a real provider or a bank account, whose records stay.
 */
export const removeDemo = command({
  name: 'demo.remove',
  input: nothing,
  async run(tx, _input, { app }: { readonly app: App }): Promise<RemovedDemo> {
    if (!(await closeDemo(tx, app.id))) throw new AppError('forbidden', `app ${app.id} is not the demo`)
    if (await hasOutsideMoney(tx, app.id, sandboxProvider().code)) {
      throw new AppError(
        'invalid_request',
        `the demo was used with a payment provider or a bank account, whose records stay: billing-cli app disable ${app.id}`,
      )
    }
    const rows = await deleteDemo(tx, app.id)
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, before: { name: app.name, rows } })
    return { app_id: app.id, rows }
  },
})
