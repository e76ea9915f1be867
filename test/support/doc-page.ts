import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** A page of the documentation, from which a reader copies. */
export interface DocPage {
  /** The whole page. */
  readonly text: string
  /** The text below a heading, up to the next one of the same or a higher level. */
  section(heading: string): string
  /** Every block of a language in a section. */
  blocks(section: string, language: string): string[]
  /** The block of a language in a section that contains this text; throws unless exactly one does. */
  block(section: string, language: string, part?: string): string
}

/** `path` is relative to the root of the project: `docs/operating.md`. */
export function openDocPage(path: string): DocPage {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const section = (heading: string): string => {
    const found = sectionOf(text, heading)
    if (found === undefined) throw new Error(`${path} has no section “${heading}”`)
    return found
  }
  const blocks = (heading: string, language: string): string[] => {
    const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms')
    return [...section(heading).matchAll(fence)].map(([, block]) => block!)
  }
  return {
    text,
    section,
    blocks,
    block(heading, language, part = '') {
      const [block, ...others] = blocks(heading, language).filter((candidate) => candidate.includes(part))
      if (block === undefined || others.length > 0)
        throw new Error(`${path}, ${heading}: ${others.length === 0 ? 'no' : 'more than one'} block with “${part}”`)
      return block
    },
  }
}

function sectionOf(text: string, heading: string): string | undefined {
  const lines = text.split('\n')
  let isCode = false
  // A line of code may look like a heading.
  const levels = lines.map((line) => {
    if (line.startsWith('```')) isCode = !isCode
    return isCode ? 0 : /^#*/.exec(line)![0].length
  })
  const start = lines.findIndex((line, index) => levels[index]! > 0 && line.replace(/^#+ /, '') === heading)
  if (start < 0) return undefined
  const end = levels.findIndex((level, index) => index > start && level > 0 && level <= levels[start]!)
  return lines.slice(start + 1, end < 0 ? undefined : end).join('\n')
}
