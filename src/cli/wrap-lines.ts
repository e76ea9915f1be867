/**
 * The text with lines of at most `width` characters, broken between words; a line that is broken keeps its indentation. A longer word
 * stays whole, so that an address or a command can be copied.
 */
export function wrapLines(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => (line.length <= width ? line : breakLine(line, width)))
    .join('\n')
}

function breakLine(text: string, width: number): string {
  const indent = /^ */.exec(text)?.[0] ?? ''
  return joinWords(text.trimStart().split(' '), { width, indent, hanging: indent, end: '' })
}

const WORD_OF_A_SHELL = /(?:"[^"]*"|'[^']*'|[^\s"'])+/g

/**
 * A command line over several lines, as a shell reads it: with a backslash at the end of each, never within quotes, and with an option
 * beside its value.
 */
export function wrapCommand(command: string, width: number): string {
  const indent = /^ */.exec(command)?.[0] ?? ''
  if (command.length <= width) return command
  return joinWords(withValues(command.match(WORD_OF_A_SHELL) ?? []), {
    width,
    indent,
    hanging: `${indent}    `,
    end: ' \\',
  })
}

/** The words, an option and what follows it as one. */
function withValues(words: readonly string[]): string[] {
  return words.reduce<string[]>((parts, word, index) => {
    const isValue = !word.startsWith('-') && words[index - 1]?.startsWith('--') === true
    return isValue ? [...parts.slice(0, -1), `${parts.at(-1) ?? ''} ${word}`] : [...parts, word]
  }, [])
}

interface Breaks {
  readonly width: number
  /** Before the first line. */
  readonly indent: string
  /** Before all further lines. */
  readonly hanging: string
  /** After each line but the last. */
  readonly end: string
}

function joinWords(words: readonly string[], { width, indent, hanging, end }: Breaks): string {
  const lines: string[] = []
  let line = ''
  for (const word of words) {
    const joined = line === '' ? `${lines.length === 0 ? indent : hanging}${word}` : `${line} ${word}`
    if (line === '' || joined.length + end.length <= width) {
      line = joined
      continue
    }
    lines.push(`${line}${end}`)
    line = `${hanging}${word}`
  }
  return [...lines, line].join('\n')
}
