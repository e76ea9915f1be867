import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** README, as an operator copies from it. */
export interface Readme {
  /** What stands below a heading, up to the next one of its level or above. */
  section(heading: string): string
  /** Every block of a language in a section. */
  blocks(section: string, language: string): string[]
  /** The block of a language in a section that holds this text; throws where not exactly one does. */
  block(section: string, language: string, holds?: string): string
}

/** `root` is a checkout of the project. */
export function openReadme(root: string): Readme {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  const blocks = (section: string, language: string): string[] => {
    const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms')
    return [...sectionOf(text, section).matchAll(fence)].map(([, block]) => block!)
  }
  return {
    section: (heading) => sectionOf(text, heading),
    blocks,
    block(section, language, holds = '') {
      const [block, ...others] = blocks(section, language).filter((candidate) => candidate.includes(holds))
      if (block === undefined || others.length > 0)
        throw new Error(`README, ${section}: ${others.length === 0 ? 'no' : 'more than one'} block with “${holds}”`)
      return block
    },
  }
}

function sectionOf(text: string, heading: string): string {
  const lines = text.split('\n')
  let isCode = false
  // A line of code may look like a heading.
  const levels = lines.map((line) => {
    if (line.startsWith('```')) isCode = !isCode
    return isCode ? 0 : /^#*/.exec(line)![0].length
  })
  const start = lines.findIndex((line, index) => levels[index]! > 0 && line.replace(/^#+ /, '') === heading)
  if (start < 0) throw new Error(`README has no section “${heading}”`)
  const end = levels.findIndex((level, index) => index > start && level > 0 && level <= levels[start]!)
  return lines.slice(start + 1, end < 0 ? undefined : end).join('\n')
}
