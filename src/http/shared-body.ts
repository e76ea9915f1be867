import type { Context } from '#context.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { renderPage, setPageHeaders, type HostedPage, type PageHttp } from './html.ts'

/** How long browsers cache a shared body. */
const SHARED_SECONDS = 300

/** A body that is the same for everybody. */
export interface SharedBody {
  readonly content: Buffer
  readonly type: string
  readonly etag: string
}

export function sharedBody(text: string, type: string): SharedBody {
  const content = Buffer.from(text)
  return { content, type, etag: sha256Hex(content).slice(0, 32) }
}

/** A page in English that is the same for everybody, for `sendShared`. */
export async function renderShared(ctx: Context, page: HostedPage): Promise<SharedBody> {
  const html = await renderPage(ctx, page, { locale: 'en', keep: '', owner: undefined, hasLanguages: false })
  return sharedBody(html, 'text/html; charset=utf-8')
}

/** Sends the body, or 304 to browsers that already have it. */
export function sendShared(http: PageHttp, { content, type, etag }: SharedBody): void {
  setPageHeaders(http)
  http.set('Cache-Control', `public, max-age=${SHARED_SECONDS}`)
  http.etag = etag
  http.status = 200
  if (http.fresh) {
    http.status = 304
    return
  }
  http.type = type
  http.body = content
}
