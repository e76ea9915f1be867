/** A key that is no character. */
export type NamedKey = 'up' | 'down' | 'page-up' | 'page-down' | 'enter' | 'escape' | 'backspace' | 'tab' | 'interrupt'
/** A key, by its name or its character. */
export type Key = { readonly name: NamedKey } | { readonly character: string }

const SEQUENCES: readonly (readonly [sequence: string, name: NamedKey])[] = [
  ['\u001b[A', 'up'],
  ['\u001bOA', 'up'],
  ['\u001b[B', 'down'],
  ['\u001bOB', 'down'],
  ['\u001b[5~', 'page-up'],
  ['\u001b[6~', 'page-down'],
  ['\r', 'enter'],
  ['\n', 'enter'],
  ['\u007f', 'backspace'],
  ['\b', 'backspace'],
  ['\t', 'tab'],
  ['\u0003', 'interrupt'],
]
/** Sequences of keys that the console does not use. */
const OTHER_SEQUENCE = /^\u001b(?:\[[0-9;?]*[ -/]*[@-~]|O.)/

/** The keys in what a terminal sent at once. */
export function keysIn(sent: string): Key[] {
  const keys: Key[] = []
  for (let rest = sent; rest !== '';) {
    const known = SEQUENCES.find(([sequence]) => rest.startsWith(sequence))
    const other = OTHER_SEQUENCE.exec(rest)?.[0]
    const character = String.fromCodePoint(rest.codePointAt(0) ?? 0)
    if (known) keys.push({ name: known[1] })
    else if (other === undefined && character === '\u001b') keys.push({ name: 'escape' })
    else if (other === undefined && character >= ' ') keys.push({ character })
    rest = rest.slice((known?.[0] ?? other ?? character).length)
  }
  return keys
}
