import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ParameterizedContext } from 'koa'
import { sha256Hex } from '#shared/crypto.ts'
import { notFound } from '#shared/errors.ts'

/** The folder of the pages' templates, style sheet and scripts. */
export const PAGE_FOLDER = join(import.meta.dirname, '../../templates/pages')

interface AssetFile {
  readonly path: string
  readonly type: string
  readonly content: Buffer
}

type AssetFiles = Readonly<Record<'css' | 'js' | 'search', AssetFile>>
let readFiles: AssetFiles | null = null

export function assetFiles(): AssetFiles {
  readFiles ??= {
    css: assetFile('style.css', 'text/css'),
    js: assetFile('page.js', 'text/javascript'),
    search: assetFile('search.js', 'text/javascript'),
  }
  return readFiles
}

/** The path of the script that only the reference needs. */
export function searchScript(): string {
  return assetFiles().search.path
}

function assetFile(name: string, type: string): AssetFile {
  const content = readFileSync(join(PAGE_FOLDER, name))
  const extension = name.slice(name.lastIndexOf('.'))
  return { path: `/assets/${sha256Hex(content).slice(0, 16)}${extension}`, type: `${type}; charset=utf-8`, content }
}

/** Serves the pages' style sheet and script under names that change with their content, so that browsers cache them permanently. */
export function sendAsset(http: ParameterizedContext): void {
  const file = Object.values(assetFiles()).find(({ path }) => path === http.path)
  if (!file) throw notFound('file')
  http.set({ 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' })
  http.type = file.type
  http.body = file.content
}
