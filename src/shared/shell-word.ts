/** A word as a shell reads it back, in quotes where it needs them. */
export function shellWord(text: string): string {
  return /^[\w@.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`
}
