import { crc32 } from 'node:zlib'
import { sanitizeSvg } from './sanitize-svg.ts'

/** A logo as it is stored and served. */
export interface Logo {
  readonly type: 'image/png' | 'image/svg+xml'
  readonly content: Buffer
}

export const MAX_LOGO_BYTES = 100_000
const MAX_PIXELS = 2000
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Chunks that draw the picture. Others, such as text and location, are left out. */
const DRAWING = new Set(['IHDR', 'PLTE', 'tRNS', 'gAMA', 'sRGB', 'IDAT', 'IEND'])

/** The picture of a PNG or SVG file, without anything that does not draw. Returns an error for any other file. */
export function readLogo(file: Buffer): Logo | { readonly error: string } {
  if (file.length > MAX_LOGO_BYTES) return { error: `must have at most ${MAX_LOGO_BYTES / 1000} KB` }
  if (file.subarray(0, PNG.length).equals(PNG)) {
    const content = cleanPng(file)
    return content
      ? { type: 'image/png', content }
      : { error: `is not a PNG picture of at most ${MAX_PIXELS} × ${MAX_PIXELS} pixels, or is damaged` }
  }
  const svg = sanitizeSvg(file)
  return typeof svg === 'string' ? { type: 'image/svg+xml', content: Buffer.from(svg) } : svg
}

/** The chunks that draw, with verified checksums; null if the file is damaged or the picture too large. */
function cleanPng(file: Buffer): Buffer | null {
  const kept: Buffer[] = [PNG]
  for (let at = PNG.length; at + 12 <= file.length;) {
    const length = file.readUInt32BE(at)
    const end = at + 12 + length
    if (end > file.length) return null
    const name = file.toString('latin1', at + 4, at + 8)
    if (crc32(file.subarray(at + 4, end - 4)) !== file.readUInt32BE(end - 4)) return null
    if ((kept.length === 1) !== (name === 'IHDR')) return null
    if (name === 'IHDR' && (length !== 13 || !isSize(file.readUInt32BE(at + 8)) || !isSize(file.readUInt32BE(at + 12))))
      return null
    if (DRAWING.has(name)) kept.push(file.subarray(at, end))
    if (name === 'IEND') return Buffer.concat(kept)
    at = end
  }
  return null
}

function isSize(pixels: number): boolean {
  return pixels > 0 && pixels <= MAX_PIXELS
}
