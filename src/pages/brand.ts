import { accentStyle } from '#apps/accent.ts'
import { findLogo, type PayableApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { admit } from '#http/admission.ts'
import type { Brand, PageHttp } from '#http/html.ts'
import { isHex64 } from '#shared/crypto.ts'
import { notFound } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { sellerLinks } from '#words/seller-links.ts'

/** The app's look on its pages in a language. */
export function brandOf({ pageSettings }: Pick<PayableApp, 'pageSettings'>, locale: Locale): Brand {
  const { logo, accent } = pageSettings ?? {}
  return {
    logo: logo === undefined ? null : `/logo/${logo}`,
    style: accent === undefined ? null : accentStyle(accent),
    links: sellerLinks(pageSettings, locale),
  }
}

export interface Description {
  readonly text: string
  /** Whether the page folds it, because it would push the payment off a phone's screen. */
  readonly isLong: boolean
}

/** In characters. */
const MAX_UNFOLDED = 200

export function descriptionOf(text: string | null | undefined): Description | null {
  const trimmed = text?.trim() ?? ''
  return trimmed === '' ? null : { text: trimmed, isLong: trimmed.length > MAX_UNFOLDED }
}

/**
 * `GET /logo/{digest}`. Named after its content, so that browsers may cache it permanently. Opened by itself, it is a sandboxed document,
 * whatever the drawing contains. Webmail shows it within its own pages, so every site may (R344).
 */
export async function sendLogo(ctx: Context, http: PageHttp, digest: string): Promise<void> {
  const logo = isHex64(digest) ? await admit(ctx, 'stranger', (db) => findLogo(db, digest)) : null
  if (!logo) throw notFound('logo')
  http.set({
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    'Cache-Control': 'public, max-age=31536000, immutable',
  })
  http.type = logo.type
  http.body = logo.content
}
