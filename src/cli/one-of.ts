import { InvalidArgumentError } from 'commander'

/** A parser for an option that takes one of these words; any other is wrong usage. */
export function oneOf<T extends string>(...words: readonly T[]): (given: string) => T {
  const parse = (given: string): T => {
    const word = words.find((each) => each === given)
    if (word === undefined) throw new InvalidArgumentError(`It must be ${orList(words)}.`)
    return word
  }
  WORDS.set(parse, words)
  return parse
}

const WORDS = new WeakMap<object, readonly string[]>()

/** The words of a parser that `oneOf` made; none for any other parser. */
export function wordsOf(parser: object | undefined): readonly string[] {
  return (parser && WORDS.get(parser)) ?? []
}

/** `active, expired or void`. */
function orList(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}
