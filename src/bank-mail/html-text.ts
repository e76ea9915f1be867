import { Parser } from 'htmlparser2'

/** Elements within a word or a line; every other element separates words. */
const INLINE = new Set([
  'a',
  'abbr',
  'b',
  'big',
  'code',
  'em',
  'font',
  'i',
  'ins',
  'mark',
  's',
  'small',
  'span',
  'strong',
  'sub',
  'sup',
  'tt',
  'u',
  'wbr',
])
const UNSEEN = new Set(['head', 'title', 'script', 'style', 'template', 'noscript', 'object', 'iframe'])

/** Deeper than any genuine mail: the parser searches all open elements for each end tag. */
const MAX_DEPTH = 1000
const PIECE_LENGTH = 4096

/** The visible words of the HTML, in order, with entities decoded. Stops where elements nest too deep. */
export function htmlToText(html: string): string {
  const words: string[] = []
  let unseenDepth = 0
  let depth = 0
  const parser = new Parser({
    onopentag(name, attributes) {
      depth += 1
      if (unseenDepth > 0 || UNSEEN.has(name) || isHidden(attributes)) unseenDepth += 1
      else if (!INLINE.has(name)) words.push(' ')
    },
    ontext(text) {
      if (unseenDepth === 0) words.push(text)
    },
    onclosetag(name) {
      depth -= 1
      if (unseenDepth > 0) unseenDepth -= 1
      else if (!INLINE.has(name)) words.push(' ')
    },
  })
  for (let at = 0; at < html.length && depth <= MAX_DEPTH; at += PIECE_LENGTH)
    parser.write(html.slice(at, at + PIECE_LENGTH))
  if (depth <= MAX_DEPTH) parser.end()
  return words.join('')
}

/** Mails begin with hidden words, a preview for the inbox list. */
function isHidden(attributes: Readonly<Record<string, string>>): boolean {
  return 'hidden' in attributes || /display\s*:\s*none/i.test(attributes['style'] ?? '')
}
