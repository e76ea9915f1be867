import { parse } from 'shell-quote'
import { AppError } from '#shared/errors.ts'

/** Line breaks end a command in a shell, and NUL ends a text in C. */
const CONTROL = /\p{Cc}/u

/** Each quote is closed, and each backslash has a character behind it. */
const IS_COMPLETE = /^(?:[^\\'"]|\\[^]|'[^']*'|"(?:[^\\"]|\\[^])*")*$/

/**
 * The words of a command line that came as one text. Quotes and backslashes are understood as a shell does. Whatever else only a shell
 * understands, such as `;`, `|`, `>`, `*` and `$`, is refused where a shell would not take it as text, and so is a line that a shell would
 * wait for more of. Throws `forbidden`.
 */
export function wordsOfLine(line: string): string[] {
  // The parser skips a quote that is not closed.
  if (!IS_COMPLETE.test(line))
    throw new AppError(
      'forbidden',
      `forbidden: the line is not complete: close its quote, or put a text with ' into double quotes`,
    )
  const tokens = parse(line, (variable: string) => {
    throw forbidden(`$${variable}`)
  })
  const words = tokens.map((token) => {
    if (typeof token === 'string') return token
    throw forbidden('comment' in token ? '#' : token.op === 'glob' ? token.pattern : token.op)
  })
  // `$'…'` writes a control character with a backslash.
  if ([line, ...words].some((text) => CONTROL.test(text))) throw forbidden('a control character')
  return words
}

function forbidden(found: string): AppError {
  return new AppError(
    'forbidden',
    `forbidden: no shell reads this line; put what has ${JSON.stringify(found)} into single quotes`,
  )
}
