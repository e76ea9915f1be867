import { printable } from './printable.ts'
import { UsageError } from './usage-error.ts'

/** Whether the command may ask. Piped input cannot answer a question that its sender never saw. */
export function isTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY
}

/** Asks on standard error, so that `--json` output stays one value. Ctrl-D cancels the question, which could no longer be answered. */
async function asked<T>(
  question: (place: { output: NodeJS.WriteStream; signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const left = new AbortController()
  const leave = (): void => left.abort()
  process.stdin.once('pause', leave)
  try {
    return await question({ output: process.stderr, signal: left.signal })
  } finally {
    process.stdin.off('pause', leave)
  }
}

/** The operator said no: exit code 1. */
export class DeclinedError extends Error {
  override readonly name = 'DeclinedError'
}

/** The value, or on a terminal the answer to a question. Elsewhere a missing value is wrong usage. */
export async function required(value: string | undefined, name: string, question = `${name}:`): Promise<string> {
  if (value !== undefined && value !== '') return value
  refuseToAsk(name)
  const { input } = await import('@inquirer/prompts')
  return asked((place) => input({ message: printable(question), required: true }, place))
}

/** The operator's reason. Ask for it only when the change is known to be possible. */
export async function askNote(note: string | undefined): Promise<string> {
  return required(note, '--note', 'Why? (kept in the audit log)')
}

export interface Choice<T extends string = string> {
  readonly value: T
  readonly name: string
  readonly description?: string
}

/** The value, or on a terminal one picked from a menu. */
export async function requiredChoice<T extends string>(
  value: T | undefined,
  name: string,
  message: string,
  choices: () => readonly Choice<T>[] | Promise<readonly Choice<T>[]>,
): Promise<T> {
  if (value !== undefined && value !== '') return value
  refuseToAsk(name)
  const found = await choices()
  if (found.length === 0) throw new UsageError(`${missing(name)}, and there is none to choose from`)
  return select(message, found)
}

/** As `requiredChoice`, for a fixed set of words; any other word is wrong usage. */
export async function requiredWord<T extends string>(
  value: string | undefined,
  name: string,
  message: string,
  choices: readonly Choice<T>[],
): Promise<T> {
  const given = await requiredChoice<string>(value, name, message, () => choices)
  const choice = choices.find((each) => each.value === given)
  if (!choice) throw new UsageError(`${name} must be one of ${choices.map((each) => each.value).join(', ')}`)
  return choice.value
}

/** Lets the operator pick one from a menu. */
export async function select<T extends string>(message: string, choices: readonly Choice<T>[]): Promise<T> {
  const prompt = await import('@inquirer/prompts')
  return asked((place) => prompt.select({ message, choices: choices.map(shownChoice) }, place))
}

/** The answer to a question on a terminal, which may be left empty. */
export async function optional(question: string): Promise<string> {
  const { input } = await import('@inquirer/prompts')
  return asked((place) => input({ message: printable(`${question} (Enter for none)`) }, place))
}

function shownChoice<T extends string>({ value, name, description }: Choice<T>): Choice<T> {
  return { value, name: printable(name), ...(description === undefined ? {} : { description: printable(description) }) }
}

/** A secret, from its environment variable or typed on a terminal without echo. Never an argument. */
export async function requiredSecret(
  variable: string,
  fromEnvironment: string | undefined,
  message: string,
): Promise<string> {
  if (fromEnvironment) return fromEnvironment
  refuseToAsk(variable, `a secret is needed: set ${variable}, or run this on a terminal`)
  const { password } = await import('@inquirer/prompts')
  // Without `toggleMask: false`, Ctrl+T shows what was typed.
  return asked((place) => password({ message, mask: '*', toggleMask: false }, place))
}

/** Whether to continue: `--yes`, or the answer on a terminal. Anywhere else a missing `--yes` is wrong usage. */
export async function confirmed(isYes: boolean | undefined, message: string): Promise<boolean> {
  if (isYes === true) return true
  if (!isTerminal()) throw new UsageError(`${message} Use --yes to skip this prompt.`)
  const { confirm } = await import('@inquirer/prompts')
  return asked((place) => confirm({ message: printable(message), default: false }, place))
}

/** Asks on a terminal before the command continues; a script is not asked. Throws `DeclinedError`. */
export async function goAhead(isYes: boolean | undefined, message: string): Promise<void> {
  if (process.stdin.isTTY && !(await confirmed(isYes, message))) throw new DeclinedError()
}

function refuseToAsk(name: string, message = missing(name)): void {
  if (!isTerminal()) throw new UsageError(message)
}

/** `missing required argument <app>`, `missing required option --note`. */
function missing(name: string): string {
  return `missing required ${name.startsWith('-') ? 'option' : 'argument'} ${name}`
}
