import type { Response } from '../support/api.ts'

const TABLES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }

/** What a reader sees of a page: its text without markup, blanks as single spaces. */
export function textOf({ text }: Pick<Response, 'text'>): string {
  const body = text.slice(text.indexOf('<body'))
  const bare = body.replace(/<(noscript|svg)\b.*?<\/\1>/gs, ' ').replace(/<[^>]*>/g, ' ')
  return decoded(bare).replace(/\s+/g, ' ').trim()
}

/** The values of an attribute, decoded, of every tag that has it, in order. */
export function attributes({ text }: Pick<Response, 'text'>, tag: string, attribute: string): string[] {
  const tags = text.match(new RegExp(`<${tag}\\b[^>]*>`, 'g')) ?? []
  return tags.flatMap((found) => {
    const value = new RegExp(`\\s${attribute}="([^"]*)"`).exec(found)
    return value ? [decoded(value[1]!)] : []
  })
}

/** The ways to pay that a page offers. */
export function offeredMethods(page: Pick<Response, 'text'>): string[] {
  return attributes(page, 'button', 'value')
}

function decoded(text: string): string {
  return text.replace(/&(?:#(\d+)|(amp|lt|gt|quot));/g, (_all, code?: string, name?: string) =>
    code === undefined ? TABLES[name!]! : String.fromCodePoint(Number(code)),
  )
}
