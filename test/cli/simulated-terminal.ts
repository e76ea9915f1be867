import type { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { render } from '@inquirer/testing'
import { runHere, within, type Surroundings } from './run-here.ts'
import { CTRL_C, type Screen, type Step } from './terminal.ts'

const ENV = { TERM: 'xterm-256color' }
/** A question that no step answers is cancelled after this time. */
const PATIENCE_MS = 40_000

/** What `@inquirer/testing` offers while a question is open. The stream that it makes for the input has no types of its own. */
type Question<T> = Omit<Awaited<ReturnType<typeof render<T, unknown>>>, 'input'> & { readonly input: Writable }

/**
 * Starts work that asks a question in this process, on a terminal that `@inquirer/testing` simulates, and has it answered. Returns what
 * the work returns.
 */
export async function answered<T>(work: () => Promise<T>, answer: (question: Question<T>) => unknown): Promise<T> {
  const question = await simulate(80, ENV, (surroundings) => within(surroundings, work))
  try {
    await answer(question)
  } catch (error) {
    // Until the question is closed, the reporter of the tests has no standard output.
    question.input.write(CTRL_C)
    await question.answer.catch(() => undefined)
    throw error
  }
  return question.answer
}

/**
 * As `onTerminal`, but in this process, on a terminal that `@inquirer/testing` simulates: for what depends on the questions and the
 * answers alone.
 */
export async function onSimulatedTerminal(
  env: Readonly<Record<string, string>>,
  words: readonly string[],
  steps: readonly Step[],
  columns = 80,
): Promise<Pick<Screen, 'code' | 'raw' | 'text' | 'left'>> {
  const { answer, input, nextRender, getFullOutput } = await simulate(columns, { ...ENV, ...env }, (surroundings) =>
    runHere(words, surroundings),
  )
  const ended = answer.then(() => true)
  const left = [...steps]
  let typedAt = 0
  do {
    const shown = await getFullOutput({ raw: true })
    while (left[0] && shown.includes(left[0][0], typedAt)) {
      typedAt = shown.length
      input.write(left.shift()![1])
    }
  } while (!(await Promise.race([ended, nextRender()])))
  const raw = await getFullOutput({ raw: true })
  return { code: await answer, raw, text: stripVTControlCharacters(raw), left }
}

/** `render` takes a prompt. Anything that reads and writes the streams that it is given can stand in its place. */
async function simulate<T>(
  columns: number,
  env: Readonly<Record<string, string>>,
  work: (surroundings: Surroundings) => Promise<T>,
): Promise<Question<T>> {
  const question: Question<T> = await render<T, unknown>(async (_config, { input, output } = {}) => {
    if (!input || !output) throw new Error('@inquirer/testing gave no streams')
    return work({ env, columns, stdin: input, write: (_stream, text) => output.write(text) })
  }, null)
  const patience = setTimeout(() => question.input.write(CTRL_C), PATIENCE_MS)
  const end = (): void => clearTimeout(patience)
  question.answer.then(end, end)
  return question
}
