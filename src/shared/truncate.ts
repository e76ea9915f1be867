/**
 * The text, cut to `max` characters where it is longer. Characters are code points, as the database counts them, so that no emoji is cut in
 * half.
 */
export function truncate(text: string, max: number): string {
  if (text.length <= max) return text
  // `max` characters are at most twice as many UTF-16 units.
  return Array.from(text.slice(0, 2 * max))
    .slice(0, max)
    .join('')
}
