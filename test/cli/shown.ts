import type { ReviewItem } from '#review/read-review.ts'
import type { Customer, Plan, Promotion, Subscription, Transaction } from '../../client/src/types.ts'

export interface ShownApp {
  accent: string | null
  support: string | null
  terms_url: string | null
  privacy_url: string | null
  statement_name: string | null
  time_zone: string | null
  app_id: number
  name: string
  api_key: string
  auth: string
  sandbox: boolean
  disabled: boolean
  webhook_url: string | null
  mail_from: string | null
  identity: { provider: string } | null
  realtime: { database_url: string; path: string } | null
  clock_offset_seconds: number
  bank_account_id: number | null
}

interface ShownBankAccount {
  bank: string
  bank_account_id: number
  mailbox: string | null
  disabled: boolean
  forward_address: string
  forward_code: string
}

interface ShownMethod {
  app_id: number
  method: string
  enabled: boolean
  has_credentials: boolean
  versions: { version: number; retired_at: string | null; forgotten: boolean; open_sessions: number }[]
}

interface ShownPayment {
  payment_id: number
  amount: number
  amount_left: number
  amount_unapplied: number
  currency: string
  reference: string
  reason: string
  transaction_id: number | null
  external_ref: string | null
}

interface ShownMail {
  id: number
  received_at: string
  app_id: number | null
  bank: string
  status: string
  reason: string | null
  review: string | null
  amount: number
  transaction_id: number | null
  suggestions: { transaction_id: number; amount_due: number; external_ref: string }[]
}

interface ShownWebhook {
  id: string
  event_type: string
  delivery_status: string
  attempts: number
  last_error: string | null
  next_attempt_at: string | null
}

interface ShownEvent {
  event_type: string
  id: string
}

interface ShownBackup {
  file: string
  bytes: number
  schema: string
  sha256: string
  taken_at: string
  rows: Record<string, number>
  sums: Record<string, Record<string, number>>
}

interface NextStep {
  what: string
  command: string
}

interface FoundPerson {
  app_id: number
  external_ref: string
  renewal_link: string
  reminders_stopped_at: string | null
  customer: Customer | null
  subscription: (Subscription & { price: { amount: number } }) | null
  events: { failed: number; pending: number; last_failed: string | null }
  mails: { reminder_id: number; status: string; error: string | null }[]
  receipts: { receipt_id: number; status: string }[]
  transactions: (Transaction & { flag_reason: string | null; link: string | null; transfer_code: string | null })[]
  unmatched: { bank_mail_id: number; transaction_id: number }[]
  next_steps: NextStep[]
}

type Own<Row> = Row & { app_id: number; sandbox: boolean }

/** What commands print with `--json`, as far as tests read it. Each run is checked against the recorded schema of its command. */
interface Outputs {
  'alert list': { kind: string; subject: string; opened_at: string | null; muted_until: string | null }[]
  'alert mute': { kind: string; muted_until: string | null }
  'alert test': { channel: string; sent: boolean; error: string | null }[]
  'app clock': { now: string }
  'app create': { app_id: number; api_key: string; api_secret: string }
  'app disable': ShownApp
  'app enable': ShownApp
  'app list': ShownApp[]
  'app rotate-secret': { api_secret: string }
  'app rotate-webhook-secret': { webhook_secret: string | null }
  'app set-identity': ShownApp
  'app set-realtime': ShownApp
  'app show': ShownApp
  'app update': ShownApp
  'approval list': { id: number; status: string; command: string }[]
  'approval show': { id: number; status: string; effects: string[] }
  'audit list': {
    id: number
    app_id: number | null
    action: string
    actor: string
    subject: string
    before: { rows?: Record<string, number> } | null
    after: unknown
  }[]
  'backup create': ShownBackup
  'backup list': { file: string; bytes: number; verified_at: string | null }[]
  'backup restore': { keys: string[]; next: string[]; rows_equal: boolean; sums_equal: boolean }
  'backup verify': {
    file: string
    ok: boolean
    rows_equal: boolean
    sums_equal: boolean
    seconds: number
    ledger: { checked: number; faults: unknown[] }
  }
  'bank-account add': ShownBankAccount
  'bank-account list': ShownBankAccount[]
  'bank-account assign': ShownBankAccount
  'bank-account disable': ShownBankAccount
  'bank-account update': ShownBankAccount
  'bank-mail forwarding': { id: number; code: string; link: string; mailbox: string; received_at: string }[]
  'bank-mail list': ShownMail[]
  console: ReviewItem[]
  'customer list': Own<Customer>[]
  'customer show': Customer
  demo: { app_id: number; days: number; payments: number; customers: number; rows: Record<string, number> }
  doctor: { check: string; ok: boolean; detail: string; fix: string | null; mend: string | null }[]
  find: {
    matches: { kind: string; id: string; app_id: number; external_ref: string | null; state: string }[]
    end_users: FoundPerson[]
    next_steps: NextStep[]
  }
  'ledger verify': { checked: number; faults: { subject: string }[] }
  'key rotate': { rotated: number }
  listen: ShownEvent & { forwarded: { http_status: number | null; error: string | null } }
  'method disable': ShownMethod[]
  'method enable': ShownMethod[]
  'method list': ShownMethod[]
  'notification list': { id: string; event_type: string; outcome: string }[]
  open: { page: string; url: string }
  'operator add': { name: string; role: string; authorized_keys: string }
  'operator list': { name: string; role: string }[]
  'payment close': { payment_id: number; closed_at: string | null }
  'payment list': Own<ShownPayment>[]
  'payment refund': { refund_id: number; reference: string | null; status: string }
  'payment show': {
    amount: number
    amount_left: number
    allocations: { transaction_id: number; amount: number; cause: string; note: string | null }[]
  }
  'plan archive': Plan
  'plan create': Plan
  'plan list': Own<Plan>[]
  'plan restore': Plan
  'plan show': Plan
  'plan update': Plan
  'price add': Plan
  'price archive': Plan
  'price restore': Plan
  'promotion archive': Promotion
  'promotion create': Promotion
  'promotion list': Own<Promotion>[]
  'promotion show': Promotion
  'realtime resync': { written: number; failed: number; failures: { external_ref: string; error: string }[] }
  'receipts unconfirmed': { receipt_id: number; external_ref: string }[]
  'reminders plan': { external_ref: string; reminder_day: number; to: string | null; reason: string | null }[]
  'reminders refused': { reminder_id: number; to: string; last_error: string | null }[]
  'reminders unconfirmed': { reminder_id: number; external_ref: string }[]
  request: { status: number; body: { data: { name: string } } }
  review: ReviewItem[]
  'service install': { unit: string; files: { path: string; action: string }[] }
  setup: {
    dns: { name: string; type: string; value: string }[]
    steps: { name: string; status: string; detail: string }[]
  }
  stats: {
    cash: { currency: string; month: string; payments: number; received: number; refunded: number }[]
    revenue: { currency: string; payments: number; received: number; refunded: number; net: number }[]
    subscriptions: { active: number; expired: number; lifetime: number }
    surplus: { currency: string; amount: number }[]
    unapplied: { currency: string; amount: number }[]
    month: { month: string; gross: Record<string, number>; net: Record<string, number> }
  }
  migrate: { applied: string[] }
  'subscription end': Subscription
  'subscription import': {
    imported: number
    skipped: number
    refused: number
    lines: { line: number; external_ref: string; result: string; reason: string | null }[]
  }
  'subscription list': Own<Subscription & { external_ref: string }>[]
  'subscription show': Subscription & { external_ref: string }
  'subscription switch-plan': Subscription
  'transaction list': Own<Transaction & { flag_reason: string | null }>[]
  'transaction resolve': Transaction & { flag_reason: string | null; refunds: { refund_id: number; amount: number }[] }
  'transaction show': Transaction & {
    app: { app_id: number; clock_offset_seconds: number }
    flag_reason: string | null
    timeline: { at: string; part: string; text: string }[]
  }
  trigger: { app_id: number; external_ref: string; events: ShownEvent[] }
  upgrade: { status: string; to: string | null; applied: string[] }
  watch: {
    at: string
    daemon: { answers: boolean; url: string }
    jobs: unknown[] | null
    flagged: { unapplied: number }[]
    payments: Own<ShownPayment>[]
    requests_per_second: number | null
    outbox: { events: number } | null
  }
  'webhook list': ShownWebhook[]
  'webhook retry': ShownWebhook
  'webhook show': ShownWebhook & {
    headers: Record<string, string>
    payload: { id: string; event_type: string }
    tries: { attempt: number; http_status: number | null; answer: string | null; error: string | null }[]
  }
  'webhook test': { event_id: string; delivered: boolean; http_status: number | null; error: string | null }
}

/** What a command of these first words prints. */
export type Shown<First extends string, Second extends string = ''> = `${First} ${Second}` extends infer Name extends
  keyof Outputs
  ? Outputs[Name]
  : First extends keyof Outputs
    ? Outputs[First]
    : unknown

/** What `--dry-run` prints: the changes, or the effects of a decision about money. */
export interface Preview {
  dry_run: true
  changes: { action: string; subject: string; before: unknown; after: unknown }[]
  events: { event_type: string }[]
  effects: string[]
  /** Of `demo`: what would be made or removed. */
  app_id: number
  rows: Record<string, number>
  payments: number
  customers: number
  /** Of `service install`. */
  files: { path: string }[]
  /** Of `request`. */
  headers: Record<string, string>
}
