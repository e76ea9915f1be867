import type { Command } from 'commander'
import { mayDo, type Role } from '#operators/role.ts'
import { AppError } from '#shared/errors.ts'
import { pathOf } from './examples.ts'
import { neededRole, permissionOf } from './permissions.ts'
import { isRemote, type Who } from './who.ts'

/**
 * Throws `forbidden` if the role may not run the command at all. This is checked before the command line is parsed, so that errors about
 * its options reveal nothing about a forbidden command.
 */
export function authorizeWords(program: Command, words: readonly string[], who: Who): void {
  if (isRemote(who) && words[0] === 'complete') throw new AppError('forbidden', 'forbidden: completion is for shells')
  const named = namedCommand(program, words)
  const path = pathOf(named)
  const isHelp = named.commands.length > 0 || words.includes('--help') || words.includes('-h')
  // `as NAME` would start itself again, even with --help.
  if (path === 'as' || !isHelp) refuseUnless(who, path, permissionOf(path).role)
}

/** Throws `forbidden` if the role may not run the command with the options that it has after parsing. */
export function authorizeOptions(command: Command, who: Who): void {
  const path = pathOf(command)
  refuseUnless(who, path, neededRole(path, command.opts()))
}

function refuseUnless(who: Who, path: string, needed: Role): void {
  if (isRemote(who) && path === 'as') throw new AppError('forbidden', 'forbidden: as is for sshd alone')
  if (!mayDo(who.role, needed))
    throw new AppError('forbidden', `forbidden: ${path} needs the role ${needed}, and yours is ${who.role}`)
}

/** The command that a line names. Only words that begin with a dash can stand between those of a command. */
function namedCommand(program: Command, words: readonly string[]): Command {
  let named = program
  for (const word of words) {
    if (word.startsWith('-')) continue
    const child = named.commands.find((each) => each.name() === word)
    if (!child) break
    named = child
  }
  return named
}
