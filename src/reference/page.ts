import { Marked, Renderer, type Tokens } from 'marked'

/** A heading, for the table of contents. `level` is 2 for a part, 3 within a part. */
interface Heading {
  readonly level: number
  readonly id: string
  readonly title: string
}

export interface ReferencePage {
  readonly headings: readonly Heading[]
  readonly html: string
}

/** The reference as HTML. HTML in `markdown` is not escaped, so it must be our own text. */
export function renderReference(markdown: string): ReferencePage {
  const headings: Heading[] = []
  const plain = new Renderer<string, string>()
  const marked = new Marked({
    renderer: {
      heading({ depth, text, tokens }: Tokens.Heading): string {
        const id = newId(text, headings)
        headings.push({ level: depth, id, title: text.replaceAll('`', '') })
        const link = `<a class="anchor" href="#${id}" aria-label="Link to this heading">#</a>`
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)} ${link}</h${depth}>\n`
      },
      codespan(token: Tokens.Codespan): string {
        // A path that is longer than a line breaks before a slash, not inside a name.
        return plain.codespan(token).replace(/(?<=[\w}])\//g, '<wbr>/')
      },
      table(token: Tokens.Table): string {
        // On a phone, a wide table scrolls rather than the page. `tabindex` makes it scroll by keyboard.
        return `<div class="scroll" tabindex="0" role="region" aria-label="Table">${tableOf(this.parser, token)}</div>\n`
      },
    },
  })
  return { html: marked.parse(markdown, { async: false }), headings }
}

interface InlineParser {
  parseInline(tokens: Tokens.TableCell['tokens']): string
}

function tableOf(parser: InlineParser, { header, rows }: Tokens.Table): string {
  const head = header.map(({ tokens }) => `<th>${parser.parseInline(tokens)}</th>`).join('')
  // On a phone each row is a block without the head: the cells between the first and the last say which column they are of.
  const nameOf = (column: number): string =>
    column > 0 && column < header.length ? (header[column]?.text.replaceAll('`', '') ?? '') : ''
  const cellsOf = (row: readonly Tokens.TableCell[]): string =>
    row.map(({ tokens }, column) => `<td data-column="${nameOf(column)}">${parser.parseInline(tokens)}</td>`).join('')
  return `<table><thead><tr>${head}</tr></thead><tbody>${rows.map((row) => `<tr>${cellsOf(row)}</tr>`).join('')}</tbody></table>`
}

function newId(text: string, headings: readonly Heading[]): string {
  const base = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  const others = headings.filter(({ id }) => id === base || id.startsWith(`${base}--`)).length
  return others === 0 ? base : `${base}--${others + 1}`
}
