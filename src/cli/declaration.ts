import { Option, type Command } from 'commander'
import { asTyped } from './as-typed.ts'
import { changeIn } from './change.ts'
import { withExamples } from './examples.ts'
import type { Output } from './output.ts'
import { inSession, outputOf, type Session } from './session.ts'
import type { Who } from './who.ts'

/** The arguments as typed, in the order of their names; on a terminal a command asks for those that are missing. */
export type Arguments = readonly (string | undefined)[]

/** What `.option` of a command takes: flags, description, and where needed a default, or a parser and a default. */
export type OptionLine = readonly [
  flags: string,
  description: string,
  parseOrInitial?: string | ((given: string, earlier: never) => unknown),
  initial?: unknown,
]

/** Options of several commands. */
export const YES: OptionLine = ['--yes', 'do not ask']
export const NOTE: OptionLine = ['--note <text>', 'why; kept in the audit log']
export const APP: OptionLine = ['--app <app>', 'only of this app']

/** Options as typed: those with a text, such as `--name <name>`, and those without, such as `--sandbox`. */
export type Texts<Name extends string> = Readonly<Partial<Record<Name, string>>>
export type Flags<Name extends string> = Readonly<Partial<Record<Name, boolean>>>

/** A command: its texts, and its work. Each function names the type of the options that it reads. */
export type Declaration = Described & (Runs | Changes | Prints)

export interface Described {
  /** Omit it if the list of commands already describes this command, which has one word. */
  readonly description?: string
  readonly options?: readonly (OptionLine | Option)[]
  readonly examples: readonly string[]
  /** Throws for wrong usage that can be detected without the database. */
  refuse?(args: Arguments, options: object): void | Promise<void>
}

/** Works on the database. */
export interface Runs {
  run(session: Session, args: Arguments, options: object): Promise<void>
}

/** Changes something, which `--dry-run` rolls back and shows. */
interface Changes {
  change(session: Session, args: Arguments, options: object): Promise<void>
}

/** Works without the database. */
interface Prints {
  print(out: Output, args: Arguments, options: object, who: Who): Promise<void>
}

/** Commands by their words, followed by the names of their arguments: `plan show [app] [plan_id]`. */
export type Commands = Readonly<Record<string, Declaration>>

/** Declares commands that begin with `words`, which have the descriptions of the groups and of commands of one word. */
export function addCommands(
  program: Command,
  words: Readonly<Record<string, string>>,
  commands: Commands,
  who: Who,
): void {
  for (const [name, description] of Object.entries(words)) program.command(name).description(description)
  for (const [line, declared] of Object.entries(commands)) addCommand(placeOf(program, line), declared, who)
}

/** The commander command for a line such as `app create` or `find [text]`. The command of its first word must already exist. */
function placeOf(program: Command, line: string): Command {
  const [first = '', ...rest] = line.split(' ')
  const top = program.commands.find((each) => each.name() === first)
  if (!top) throw new Error(`the list of commands has no ${first}`)
  if (/^[a-z]/.test(rest[0] ?? '')) return top.command(rest.join(' '))
  for (const argument of rest) top.argument(argument)
  return top
}

function addCommand(command: Command, declared: Declaration, who: Who): void {
  if (declared.description !== undefined) command.description(declared.description)
  for (const option of declared.options ?? []) command.addOption(optionOf(option))
  if ('change' in declared) command.option('--dry-run', 'only show what would change')
  withExamples(command, declared.examples)
  command.action(() => runDeclared(command, declared, who))
}

function optionOf(option: OptionLine | Option): Option {
  if (option instanceof Option) return option
  const [flags, description, parseOrInitial, initial] = option
  const isParser = typeof parseOrInitial === 'function'
  const made = new Option(flags, description).default(isParser ? initial : parseOrInitial)
  return isParser ? made.argParser(parseOrInitial as never) : made
}

async function runDeclared(command: Command, declared: Declaration, who: Who): Promise<void> {
  const args = command.processedArgs as Arguments
  const options = command.opts()
  try {
    await declared.refuse?.(args, options)
    if ('print' in declared) await declared.print(await outputOf(command), args, options, who)
    else await inSession(command, who, (session) => runOnDatabase(session, declared, args, options))
  } catch (error) {
    throw asTyped(error, command)
  }
}

function runOnDatabase(session: Session, declared: Runs | Changes, args: Arguments, options: object): Promise<void> {
  if ('run' in declared) return declared.run(session, args, options)
  return changeIn(session, options, (target) => declared.change(target, args, options))
}
