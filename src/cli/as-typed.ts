import type { Command } from 'commander'
import { AppError } from '#shared/errors.ts'

/** The options of fields whose names differ, in the order in which a command's options are searched for them. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  projectId: ['firebase-project'],
  plan_codes: ['plans'],
  prices: ['price'],
  amount: ['price'],
  currency: ['amount', 'price'],
  interval_unit: ['price'],
  interval_count: ['price'],
}

/** The error, which names a field as the operator typed it. */
export function asTyped(thrown: unknown, command: Command): unknown {
  if (!(thrown instanceof AppError) || thrown.field === null) return thrown
  const typed = typedAs(thrown.field, command)
  if (typed === null) return thrown
  return new AppError(
    thrown.code,
    thrown.message.replace(thrown.field, () => typed),
  )
}

/** `--service-account.client_email`, `<external_ref>`; null for a field that is neither an option nor an argument, or is in a file. */
function typedAs(field: string, command: Command): string | null {
  if (command.getOptionValue('file') !== undefined) return null
  const [first = '', ...path] = field.split('.').filter((part) => !/^\d+$/.test(part))
  if (command.registeredArguments.some((argument) => argument.name() === first)) return `<${first}>`
  const names = [
    first
      .replace(/_(?:ms|seconds)$/, '')
      .replace(/_|(?=[A-Z])/g, '-')
      .toLowerCase(),
    ...(OTHER_NAMES[first] ?? []),
  ]
  const name = names.find((each) => command.options.some(({ long }) => long === `--${each}`))
  return name === undefined ? null : [`--${name}`, ...path].join('.')
}
