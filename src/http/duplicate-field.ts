/** Strings and structural characters; numbers, `true`, `false`, `null` and white space are skipped. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]/g

interface Level {
  /** Names read so far; null in an array. */
  readonly names: Set<string> | null
  /** The name or index that is being read. */
  at: string | number
  expectsName: boolean
}

/**
 * Dotted path of the first field that occurs twice in an object of this JSON; null if there is none. JSON parsers disagree on which of the
 * two counts. `json` must be valid. Keeps its own stack, since the nesting may be deep.
 */
export function duplicateField(json: string): string | null {
  const levels: Level[] = []
  for (const [token] of json.matchAll(TOKEN)) {
    const level = levels.at(-1)
    if (token === '{') levels.push({ names: new Set(), at: '', expectsName: true })
    else if (token === '[') levels.push({ names: null, at: 0, expectsName: false })
    else if (token === '}' || token === ']') levels.pop()
    else if (level && token === ',') stepOn(level)
    else if (level && token === ':') level.expectsName = false
    else if (level?.expectsName && isRepeated(level, token)) return levels.map(({ at }) => at).join('.')
  }
  return null
}

function stepOn(level: Level): void {
  if (level.names) level.expectsName = true
  else level.at = Number(level.at) + 1
}

function isRepeated(level: Level, token: string): boolean {
  const name = JSON.parse(token) as string
  level.at = name
  if (level.names?.has(name)) return true
  level.names?.add(name)
  return false
}
