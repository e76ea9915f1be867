import { goAhead, required, requiredChoice, requiredWord } from './ask.ts'
import { minuteCell } from './cells.ts'
import { ROLES, type Role } from '#operators/role.ts'
import type { Consent } from './change.ts'
import { YES, type Commands, type Texts } from './declaration.ts'
import { listOfService } from './list.ts'
import { oneOf } from './one-of.ts'
import { readTextFile } from './read-file.ts'
import { performAs, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

/** `operator …` and `as`: people who work through SSH, and what each may do. */
export const commands: Commands = {
  'operator add [name]': {
    description: 'add an operator, and print the line of authorized_keys for the key',
    options: [
      ['--role <role>', `what the operator may do: ${ROLES.join(', ')}`, oneOf(...ROLES)],
      ['--ssh-key <file>', 'the public key; - reads standard input'],
    ],
    examples: ['operator add linh --role support --ssh-key linh.pub', 'operator add minh --role view --dry-run'],
    async change(session, [name], options: Texts<'sshKey'> & { readonly role?: Role }) {
      const { addOperator } = await import('#operators/add-operator.ts')
      const { authorizedKey, parsePublicKey } = await import('#operators/authorized-key.ts')
      const { cliPath } = await import('#setup/cli-path.ts')
      const key = options.sshKey === undefined ? null : parsePublicKey(readTextFile(options.sshKey))
      const typed = {
        name: await required(name, '<name>', 'Name of the operator:'),
        role: await roleOf(options.role, '--role'),
      }
      const added = await performAs(session, addOperator, typed, null)
      const line = authorizedKey(cliPath(), added.name, key)
      session.out.result({ ...added, authorized_keys: line }, () => {
        session.out.line(`${added.name} is an operator with the role ${added.role}.`)
        session.out.line('Add this line to ~/.ssh/authorized_keys of the account that runs billing-cli:')
        session.out.lines(line)
        if (key === null) session.out.hint('Put the public key behind it, or give it by --ssh-key.')
      })
    },
  },
  'operator list': listOfService({
    description: 'all operators with their roles',
    examples: ['operator list', 'operator list --json'],
    rows: async ({ ctx }) => (await import('#operators/list-operators.ts')).listOperators(ctx),
    columns: () => [
      ['name', (row) => row.name],
      ['role', (row) => row.role],
      ['added (UTC)', (row) => minuteCell(row.created_at)],
    ],
    none: () => 'No operators yet: billing-cli operator add',
  }),
  'operator set-role [name] [role]': {
    description: 'give an operator another role, from the next command on',
    examples: ['operator set-role linh money', 'operator set-role linh view --dry-run'],
    async change(session, [name, role]) {
      const { setOperatorRole } = await import('#operators/change-operator.ts')
      const operator = await pickOperator(session, name)
      const next = await roleOf(role, '<role>')
      await performAs(session, setOperatorRole, { role: next }, { name: operator })
      session.out.result({ name: operator, role: next }, () => session.out.line(`${operator} has the role ${next}.`))
    },
  },
  'operator remove [name]': {
    description: 'remove an operator; the key opens nothing any more',
    options: [YES],
    examples: ['operator remove linh', 'operator remove linh --dry-run'],
    async change(session, [name], { yes, dryRun }: Consent) {
      const { removeOperator } = await import('#operators/change-operator.ts')
      const operator = await pickOperator(session, name)
      await goAhead(yes ?? dryRun, `Remove operator ${operator}?`)
      const { role } = await performAs(session, removeOperator, undefined, { name: operator })
      session.out.result({ name: operator, role }, () => {
        session.out.line(`${operator} is no operator any more.`)
        session.out.hint('Remove the line from authorized_keys, too.')
      })
    },
  },
  'as [name]': {
    examples: ['as linh'],
    // Reached only without a name: with one, `run.ts` continues as that operator.
    print: () => Promise.reject(new UsageError('missing required argument <name>')),
  },
}

async function roleOf(given: string | undefined, name: string): Promise<Role> {
  return requiredWord(given, name, 'What may the operator do?', [
    { value: 'view', name: 'view: read everything' },
    { value: 'support', name: 'support: match mails, dismiss, complete, retry webhooks and mails' },
    { value: 'money', name: 'money: refund, move payments, end subscriptions, too' },
    { value: 'owner', name: 'owner: everything' },
  ])
}

async function pickOperator({ ctx }: Session, named: string | undefined): Promise<string> {
  return requiredChoice(named, '<name>', 'Which operator?', async () => {
    const { listOperators } = await import('#operators/list-operators.ts')
    return (await listOperators(ctx)).map(({ name, role }) => ({ value: name, name: `${name}: ${role}` }))
  })
}
