/** Breaks the text into lines of at most `width` characters, between words. Longer words are broken at the end of the line. */
export function wrap(text: string, width: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const joined = line === '' ? word : `${line} ${word}`
    if (joined.length <= width) {
      line = joined
      continue
    }
    if (line !== '') lines.push(line)
    const parts = chunksOf(word, width)
    line = parts.pop() ?? ''
    lines.push(...parts)
  }
  return [...lines, line].join('\n')
}

function chunksOf(word: string, width: number): string[] {
  return Array.from({ length: Math.ceil(word.length / width) }, (_, index) =>
    word.slice(index * width, (index + 1) * width),
  )
}
