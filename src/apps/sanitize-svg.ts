import { Parser } from 'htmlparser2'
import { countCopies, type DrawnElement } from './count-copies.ts'

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '))

/** Elements that draw, or that those refer to. None can run, load or embed anything. */
const ELEMENTS = words(
  'svg g defs symbol use title desc path rect circle ellipse line polyline polygon text tspan linearGradient radialGradient stop clipPath mask',
)
/** Left out silently with their content: drawing programs write them, and they are not visible. */
const IGNORED = /^(metadata|sodipodi:.*|inkscape:.*)$/
const ATTRIBUTES = words(
  'id viewBox width height x y x1 y1 x2 y2 cx cy r rx ry fx fy d points transform preserveAspectRatio fill fill-rule fill-opacity stroke stroke-width stroke-linecap ' +
    'stroke-linejoin stroke-miterlimit stroke-dasharray stroke-dashoffset stroke-opacity opacity clip-path clip-rule mask color display visibility vector-effect offset ' +
    'stop-color stop-opacity gradientUnits gradientTransform spreadMethod clipPathUnits maskUnits maskContentUnits paint-order text-anchor dominant-baseline dx dy ' +
    'font-family font-size font-weight font-style letter-spacing href xlink:href style',
)
const OWN_REFERENCE = /^#[\w.-]+$/
const URL_REFERENCE = /url\(['"]?#([\w.-]+)/gi
const PAINTS = words('linearGradient radialGradient')
const MAX_DEPTH = 100
/** Elements that are drawn again because others refer to them: a few lines could otherwise draw millions. */
const MAX_COPIES = 1000

/**
 * The drawing of an SVG file, rewritten from the elements and attributes that draw. Returns an error for anything that is not an SVG, and
 * where leaving something out would change the drawing.
 */
export function sanitizeSvg(file: Buffer): string | { readonly error: string } {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(file)
  } catch {
    return { error: 'is neither a PNG picture nor an SVG drawing' }
  }
  const out: string[] = []
  const open: (DrawnElement & { readonly name: string })[] = []
  let root: DrawnElement | undefined
  let ignored = 0
  const reasons: string[] = []
  const fail = (reason: string): void => {
    reasons.push(reason)
  }
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (ignored > 0 || IGNORED.test(name)) {
          ignored += 1
          return
        }
        if (open.length === 0 && (name !== 'svg' || out.length > 0)) fail('is neither a PNG picture nor an SVG drawing')
        if (!ELEMENTS.has(name))
          fail(`holds <${name.slice(0, 30)}>, which a logo may not: export it as plain paths, or as PNG`)
        if (open.length >= MAX_DEPTH) fail('is nested too deeply')
        const kept = harmless(attributes)
        out.push(`<${name}${open.length === 0 ? ' xmlns="http://www.w3.org/2000/svg"' : ''}${written(kept)}>`)
        const element = {
          name,
          id: attributes['id'],
          parts: [],
          references: referencesOf(kept),
          isPaint: PAINTS.has(name),
        }
        open.at(-1)?.parts.push(element)
        root ??= element
        open.push(element)
      },
      ontext(data) {
        if (ignored === 0 && open.length > 0) out.push(escaped(data))
      },
      onclosetag(name) {
        if (ignored > 0) {
          ignored -= 1
          return
        }
        if (open.pop()?.name !== name) fail('is not well-formed')
        out.push(`</${name}>`)
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  parser.end(text)
  if (!root) fail('is neither a PNG picture nor an SVG drawing')
  const [reason = root && copiesReason(root)] = reasons
  return reason === undefined ? out.join('') : { error: reason }
}

function copiesReason(root: DrawnElement): string | undefined {
  const copies = countCopies(root)
  if (copies === 'cycle') return 'holds an element that refers to itself'
  if (copies === 'depth') return 'is nested too deeply'
  return copies > MAX_COPIES ? `repeats its elements more than ${MAX_COPIES} times by reference` : undefined
}

type Attribute = readonly [name: string, value: string]

/** The attributes that draw. One that refers to anything but a part of the drawing itself is left out. */
function harmless(attributes: Readonly<Record<string, string>>): Attribute[] {
  return Object.entries(attributes).filter(([name, value]) => ATTRIBUTES.has(name) && isHarmless(name, value))
}

function written(attributes: readonly Attribute[]): string {
  return attributes.map(([name, value]) => ` ${name === 'xlink:href' ? 'href' : name}="${escaped(value)}"`).join('')
}

/** The ids of the elements that harmless attributes refer to. */
function referencesOf(attributes: readonly Attribute[]): string[] {
  return attributes.flatMap(([name, value]) =>
    name.endsWith('href') ? [value.slice(1)] : [...value.matchAll(URL_REFERENCE)].map(([, id = '']) => id),
  )
}

function isHarmless(name: string, value: string): boolean {
  if (name === 'href' || name === 'xlink:href') return OWN_REFERENCE.test(value)
  // These could hide a reference: a CSS escape, a rule, a comment.
  if (/[\\@<>]|\/\*/.test(value)) return false
  const references = value.toLowerCase().split('url(').slice(1)
  return references.every((reference) => /^['"]?#[\w.-]+['"]?\)/.test(reference))
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
