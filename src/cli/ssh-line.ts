import { loadConfig } from '#config/config.ts'
import { sshCommand } from '#config/environment.ts'
import { openContext } from '#open-context.ts'
import { roleOfOperator } from '#operators/list-operators.ts'
import { AppError } from '#shared/errors.ts'
import type { Who } from './who.ts'
import { wordsOfLine } from './words-of-line.ts'

/** The operator whose key sshd accepted, with the role that they have now. Throws `forbidden` if they are no longer an operator. */
export async function whoIs(name: string): Promise<Who> {
  const config = { ...loadConfig(), logLevel: 'silent' as const }
  const { ctx, close } = await openContext({ config, thread: 'cli', poolSize: 1 })
  try {
    const role = await roleOfOperator(ctx, name)
    if (role === null)
      throw new AppError('forbidden', `forbidden: ${name} is no operator; see billing-cli operator list`)
    return { name, role }
  } finally {
    await close()
  }
}

/** The words of what the operator's ssh asked for: a command line, or the console where it asked for none. Throws as `wordsOfLine`. */
export function lineOf({ role }: Who): string[] {
  const line = sshCommand()
  return line === null ? ['console', ...(role === 'view' ? [] : ['--write'])] : wordsOfLine(line)
}
