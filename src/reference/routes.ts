import Router from '@koa/router'
import type { AppRoute } from '#apps/authenticate.ts'
import type { Context } from '#context.ts'
import { searchScript } from '#http/assets.ts'
import type { RequestState } from '#http/errors.ts'
import { renderShared, sendShared, sharedBody } from '#http/shared-body.ts'
import { notFound } from '#shared/errors.ts'

/**
 * `GET /openapi.json`, which pages of any origin may read, `GET /docs`, the same for people, and `GET /`, which leads there. They are
 * generated at the first request and kept. They are public: they contain nothing about this installation.
 */
export function referenceRoutes(ctx: Context, routes: readonly AppRoute[]): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  const documents = lazily(() => makeDocuments(ctx, routes))
  const welcome = lazily(() => renderShared(ctx, { template: 'welcome', title: 'Paygate', values: {} }))
  router.get('/', async (http) => {
    http.vary('Accept')
    // Clients of the API take JSON alone.
    if (http.accepts('html', 'json') !== 'html') throw notFound('address')
    sendShared(http, await welcome())
  })
  router.get('/openapi.json', async (http) => {
    sendShared(http, (await documents()).openApi)
    http.set('Access-Control-Allow-Origin', '*')
  })
  router.get('/docs', async (http) => {
    sendShared(http, (await documents()).page)
  })
  return router
}

async function makeDocuments(ctx: Context, routes: readonly AppRoute[]) {
  const [{ openApiOf }, { referenceOf }, { renderReference }, { samples }] = await Promise.all([
    import('./openapi.ts'),
    import('./markdown.ts'),
    import('./page.ts'),
    import('./sample-blocks.ts'),
  ])
  const api = openApiOf(routes, ctx.config.baseUrl)
  const values = { ...renderReference(referenceOf(api, samples)), search: searchScript() }
  return {
    openApi: sharedBody(JSON.stringify(api), 'application/json; charset=utf-8'),
    page: await renderShared(ctx, { template: 'reference', title: 'API reference', values }),
  }
}

function lazily<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | null = null
  // A failure is not kept, so that the next request tries again.
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = null
      throw error
    }))
}
