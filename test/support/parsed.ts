/** The JSON value of a text, such as an answer; the text itself where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
