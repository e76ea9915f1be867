import type { Role } from '#operators/role.ts'

/** What a command does: it only reads, it changes something, or it decides about money. */
export type Effect = 'reads' | 'changes' | 'moves_money'

export interface Permission {
  readonly effect: Effect
  /** The least role that may run it. */
  readonly role: Role
  /** Options that need a higher role. */
  readonly more?: readonly More[]
}

interface More {
  readonly option: string
  /** Only this value needs the role; any if left out. */
  readonly value?: string
  /** As it is typed. */
  readonly shown: string
  readonly role: Role
}

const read: Permission = { effect: 'reads', role: 'view' }
const support: Permission = { effect: 'changes', role: 'support' }
const money: Permission = { effect: 'moves_money', role: 'money' }
const owner: Permission = { effect: 'changes', role: 'owner' }
/** Reads or writes files of the server. */
const file: Permission = { effect: 'reads', role: 'owner' }

/** Every command with what it does and who may do it. A command that is missing here is for owners alone, and a test reports it. */
const PERMISSIONS: Readonly<Record<string, Permission>> = {
  find: read,
  open: read,
  console: { effect: 'reads', role: 'view', more: [{ option: 'write', shown: '--write', role: 'support' }] },
  review: read,
  'app create': owner,
  'app list': read,
  'app show': read,
  'app update': owner,
  'app disable': owner,
  'app enable': owner,
  'app rotate-secret': owner,
  'app rotate-webhook-secret': owner,
  'app set-identity': owner,
  'app set-realtime': owner,
  'app clock': owner,
  'app export': file,
  'method enable': owner,
  'method disable': owner,
  'method forget': owner,
  'method list': read,
  'notification list': read,
  'bank-account add': owner,
  'bank-account list': read,
  'bank-account update': owner,
  'bank-account disable': owner,
  'bank-account assign': owner,
  'bank-mail list': read,
  'bank-mail forwarding': read,
  'bank-mail match': { effect: 'moves_money', role: 'support' },
  'bank-mail close': support,
  'plan list': read,
  'plan show': read,
  'plan create': owner,
  'plan update': owner,
  'plan archive': owner,
  'plan restore': owner,
  'price add': owner,
  'price archive': owner,
  'price restore': owner,
  'promotion create': owner,
  'promotion list': read,
  'promotion show': read,
  'promotion archive': owner,
  'promotion restore': owner,
  'customer list': read,
  'customer show': read,
  'subscription list': read,
  'subscription show': read,
  'subscription switch-plan': owner,
  'subscription attach-customer': support,
  'subscription end': { effect: 'changes', role: 'money' },
  'subscription reminders': support,
  'subscription import': owner,
  'transaction list': read,
  'transaction show': read,
  'transaction resolve': {
    effect: 'moves_money',
    role: 'support',
    more: [{ option: 'action', value: 'refund', shown: '--action refund', role: 'money' }],
  },
  'ledger verify': read,
  'payment list': read,
  'payment show': read,
  'payment move': money,
  'payment refund': money,
  'payment close': support,
  reconcile: { effect: 'changes', role: 'support' },
  'webhook list': read,
  'webhook show': read,
  'webhook retry': support,
  'webhook test': support,
  listen: { effect: 'reads', role: 'view', more: [{ option: 'forwardTo', shown: '--forward-to', role: 'owner' }] },
  trigger: owner,
  request: owner,
  demo: owner,
  'reminders plan': read,
  'reminders unconfirmed': read,
  'reminders settle': support,
  'reminders refused': {
    effect: 'reads',
    role: 'view',
    more: [{ option: 'retry', shown: '--retry', role: 'support' }],
  },
  'receipts unconfirmed': read,
  'receipts settle': support,
  'mail test': owner,
  'realtime resync': support,
  migrate: owner,
  upgrade: owner,
  'audit list': read,
  'key rotate': owner,
  'key export': file,
  'backup create': file,
  'backup list': read,
  'backup verify': file,
  'backup restore': owner,
  stats: read,
  'alert list': read,
  'alert test': support,
  'alert mute': support,
  watch: read,
  doctor: read,
  setup: owner,
  'service install': owner,
  'operator add': owner,
  'operator list': read,
  'operator set-role': owner,
  'operator remove': owner,
  as: owner,
  'approval list': read,
  'approval show': read,
  'approval grant': money,
  'approval deny': { effect: 'changes', role: 'money' },
  docs: read,
  completion: read,
}

/** The permission of a command by its words, such as `app create`. */
export function permissionOf(words: string): Permission {
  return PERMISSIONS[words] ?? owner
}

/** The role that a command needs with these options, as they take effect. */
export function neededRole(words: string, options: Readonly<Record<string, unknown>>): Role {
  const { role, more = [] } = permissionOf(words)
  const applies = more.find(({ option, value }) => (value === undefined ? options[option] : options[option] === value))
  return applies?.role ?? role
}

/** Every command with what it does and the role that it needs, as docs/operators.md carries it. */
export function formatPermissions(): string {
  const rows = Object.entries(PERMISSIONS).map(([words, { effect, role, more = [] }]) => {
    const roles = [role, ...more.map((one) => `${one.role} with \`${one.shown}\``)]
    return `| \`${words}\` | ${effect.replace('_', ' ')} | ${roles.join(', ')} |`
  })
  return ['| command | what it does | role |', '|---|---|---|', ...rows].join('\n')
}
