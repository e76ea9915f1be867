import serialize from 'dom-serializer'
import { DomUtils, parseDocument } from 'htmlparser2'
import { countCopies, type DrawnElement } from './count-copies.ts'

type ChildNode = ReturnType<typeof parseDocument>['children'][number]
type Element = Extract<ChildNode, { attribs: object }>

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
const NO_PICTURE = 'is neither a PNG picture nor an SVG drawing'
const MAX_DEPTH = 100
/** Elements that are drawn again because others refer to them: a few lines could otherwise draw millions. */
const MAX_COPIES = 1000

/** Why a file is not accepted as a logo. */
class Refused extends Error {
  override readonly name = 'Refused'
}

/**
 * The drawing of an SVG file: the elements and attributes that draw, written anew. Returns an error for anything that is not an SVG, and
 * where leaving something out would change the drawing.
 */
export function sanitizeSvg(file: Buffer): string | { readonly error: string } {
  try {
    const root = rootOf(file)
    refuseCopies(keepDrawing(root, 1))
    root.attribs = { xmlns: 'http://www.w3.org/2000/svg', ...root.attribs }
    return serialize(root, { xmlMode: true })
  } catch (error) {
    if (error instanceof Refused) return { error: error.message }
    throw error
  }
}

function rootOf(file: Buffer): Element {
  const elements = parseDocument(textOf(file), { xmlMode: true }).children.filter(isKeptElement)
  const [root] = elements
  if (root?.name !== 'svg' || elements.length > 1) throw new Refused(NO_PICTURE)
  return root
}

function textOf(file: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(file)
  } catch {
    throw new Refused(NO_PICTURE)
  }
}

/** Takes from an element all that does not draw, and returns what it draws. */
function keepDrawing(element: Element, depth: number): DrawnElement {
  if (!ELEMENTS.has(element.name))
    throw new Refused(`holds <${element.name.slice(0, 30)}>, which a logo may not: export it as plain paths, or as PNG`)
  if (depth > MAX_DEPTH) throw new Refused('is nested too deeply')
  element.attribs = harmless(element.attribs)
  element.children = element.children.filter((node) => isKeptElement(node) || isText(node))
  return {
    id: element.attribs['id'],
    parts: element.children.filter(isKeptElement).map((child) => keepDrawing(child, depth + 1)),
    references: referencesOf(element.attribs),
    isPaint: PAINTS.has(element.name),
  }
}

function isKeptElement(node: ChildNode): node is Element {
  return DomUtils.isTag(node) && !IGNORED.test(node.name)
}

function isText(node: ChildNode): boolean {
  return DomUtils.isText(node) || DomUtils.isCDATA(node)
}

function refuseCopies(root: DrawnElement): void {
  const copies = countCopies(root)
  if (copies === 'cycle') throw new Refused('holds an element that refers to itself')
  if (copies === 'depth') throw new Refused('is nested too deeply')
  if (copies > MAX_COPIES) throw new Refused(`repeats its elements more than ${MAX_COPIES} times by reference`)
}

type Attributes = Readonly<Record<string, string>>

/** The attributes that draw. One that refers to anything but a part of the drawing itself is left out. */
function harmless(attributes: Attributes): Record<string, string> {
  const kept = Object.entries(attributes).filter(([name, value]) => ATTRIBUTES.has(name) && isHarmless(name, value))
  return Object.fromEntries(kept.map(([name, value]) => [name === 'xlink:href' ? 'href' : name, value]))
}

/** The ids of the elements that harmless attributes refer to. */
function referencesOf(attributes: Attributes): string[] {
  return Object.entries(attributes).flatMap(([name, value]) =>
    name === 'href' ? [value.slice(1)] : [...value.matchAll(URL_REFERENCE)].map(([, id = '']) => id),
  )
}

function isHarmless(name: string, value: string): boolean {
  if (name === 'href' || name === 'xlink:href') return OWN_REFERENCE.test(value)
  // These could hide a reference: a CSS escape, a rule, a comment.
  if (/[\\@<>]|\/\*/.test(value)) return false
  const references = value.toLowerCase().split('url(').slice(1)
  return references.every((reference) => /^['"]?#[\w.-]+['"]?\)/.test(reference))
}
