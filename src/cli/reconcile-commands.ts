import { APP, type Commands } from './declaration.ts'
import { fail } from './session.ts'

/** `reconcile`: asks the providers about payments that are pending. */
export const commands: Commands = {
  reconcile: {
    options: [APP],
    examples: ['reconcile', 'reconcile --app 1'],
    async run({ ctx, out, pickApp }, _args, options: { app?: string }) {
      const { reconcilePayments } = await import('#providers/engine/reconcile-payments.ts')
      const appId = options.app === undefined ? {} : { appId: (await pickApp(options.app)).id }
      const counts = await reconcilePayments(ctx, { ...appId, all: true })
      const { lookedUp: looked_up, paid, closed, stillOpen: still_open, failed } = counts
      const found = `${paid} paid, ${closed} closed, ${still_open} still open, ${failed} without answer`
      out.result({ looked_up, paid, closed, still_open, failed }, () => out.line(`${looked_up} looked up: ${found}`))
      if (failed > 0) await fail('provider_error', `${failed} without an answer of the provider`)
    },
  },
}
