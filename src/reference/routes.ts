import Router from '@koa/router'
import type { AppRoute } from '#apps/authenticate.ts'
import type { Context } from '#context.ts'
import type { RequestState } from '#http/errors.ts'
import { sendPage } from '#http/html.ts'

/**
 * `GET /openapi.json`, which pages of any origin may read, and `GET /docs`, the same for people. Both are generated at the first request.
 * They are public: they contain nothing about this installation.
 */
export function referenceRoutes(ctx: Context, routes: readonly AppRoute[]): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  const documents = lazily(() => makeDocuments(routes))
  router.get('/openapi.json', async (http) => {
    http.set('Access-Control-Allow-Origin', '*')
    http.type = 'application/json'
    http.body = (await documents()).json
  })
  router.get('/docs', async (http) => {
    const { page } = await documents()
    await sendPage(ctx, http, { template: 'reference', title: 'API reference', values: { ...page }, onlyIn: 'en' })
  })
  return router
}

async function makeDocuments(routes: readonly AppRoute[]) {
  const [{ openApiOf }, { referenceOf }, { renderReference }] = await Promise.all([
    import('./openapi.ts'),
    import('./markdown.ts'),
    import('./page.ts'),
  ])
  const api = openApiOf(routes)
  return { json: JSON.stringify(api), page: renderReference(referenceOf(api)) }
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
