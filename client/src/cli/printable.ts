/** The text with what would steer a terminal, or turn the text beside it, escaped: end users choose some of what is shown. */
export function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** What JSON leaves as it is, and a terminal does not. */
const STEERING = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** The value as JSON that steers no terminal, and reads as the same value. */
export function printableJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(
    STEERING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
