import { getApp } from '#apps/store.ts'
import { openDatabase } from '#db/connect.ts'
import { lossyServer, type LossyServer } from '../db/lossy-server.ts'
import { SmtpInbox } from '../mail/smtp-inbox.ts'
import { PAYOS_KEYS } from '../providers/payos-shop.ts'
import { RELAY_SETTINGS } from '../bank-mail/bank-shop.ts'
import { TRANSFER } from '../support/bank-mails.ts'
import { startClientScenario, type ClientScenario } from '../support/client-scenario.ts'
import { TestClock } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { anApp, aPlan, MONTHLY, priceId, type TestApp } from '../support/factories.ts'
import { HTTP, MYSQL, openLine, SMTP, type Line, type Protocol } from '../support/line.ts'
import { startOidcIssuer } from '../support/oidc-issuer.ts'
import { addBankAccount, assignBankAccount, changeApp, enableMethod } from '../support/operators.ts'
import { startPayosPeer, type PayosPeer } from '../support/payos-peer.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { Receiver } from '../support/receiver.ts'
import { startStripePeer, type StripePeer } from '../support/stripe-peer.ts'
import { CARD } from './card-rig.ts'
import type { LineName, ProgramFault, StatementFault } from './line-program.ts'

/** The whole service, with a line in front of everything that it talks to. */
export interface LineRig {
  readonly scenario: ClientScenario
  readonly clock: TestClock
  readonly lines: Readonly<Record<LineName, Line>>
  readonly inbox: SmtpInbox
  readonly stripe: StripePeer
  readonly payos: PayosPeer
  readonly realtime: RealtimePeer
  readonly receiver: Receiver
  /** `client`: identity tokens and realtime nodes; `sandbox`: the test method and reminders; `live`: card, PayOS and bank transfer. */
  readonly apps: Readonly<Record<AppName, LineApp>>
  /** The code of the address that the bank's mails are forwarded to. */
  readonly forwardCode: string
  /** Begins a fault in place of that of the step before; null lets everything pass. */
  begin(fault: ProgramFault | null): void
  /** How many packets, connections and statements met a fault. */
  struck(): number
  /** From now on the service uses the database without a line, and without the line's short deadlines. */
  bypass(): void
  stop(): Promise<void>
}

export type AppName = 'client' | 'sandbox' | 'live'
export interface LineApp extends TestApp {
  readonly price: string
}

/** Short, so that a frozen server is given up within a step. */
const STATEMENT_SECONDS = 0.5
const WEEKLY = { amount: 30_000, currency: 'VND', interval_unit: 'week', interval_count: 1 } as const

type Closing = () => Promise<unknown>

export async function openLineRig(): Promise<LineRig> {
  const closing: Closing[] = []
  const opened = async <T>(opening: Promise<T>, close: (opened: T) => Promise<unknown>): Promise<T> => {
    const it = await opening
    closing.unshift(() => close(it))
    return it
  }
  const line = (target: number | string, protocol: Protocol): Promise<Line> =>
    opened(openLine(target, protocol), (it) => it.close())
  const clock = new TestClock()
  const inbox = await opened(SmtpInbox.open(), (it) => it.stop())
  const stripe = await opened(startStripePeer(clock, [CARD.secretKey]), (it) => it.stop())
  const payos = await opened(startPayosPeer(clock, PAYOS_KEYS), (it) => it.stop())
  const realtime = await opened(startRealtimePeer(), (it) => it.stop())
  const receiver = await opened(Receiver.start(), (it) => it.stop())
  const issuer = await opened(startOidcIssuer(), (it) => it.stop())
  const lossy = await opened(lossyServer(testDatabase().socketPath), (it) => it.close())
  const lines = {
    database: await line(lossy.socketPath, MYSQL),
    'mail server': await line(portOf(inbox.url), SMTP),
    Stripe: await line(portOf(stripe.base), HTTP),
    PayOS: await line(portOf(payos.base), HTTP),
    Firebase: await line(portOf(realtime.url), HTTP),
    receiver: await line(portOf(receiver.url), HTTP),
  }
  const webhookUrl = `${near(lines.receiver)}/webhooks`
  const scenario = await opened(
    startClientScenario(realtime, issuer, { webhookUrl, clock, settings: settingsOf(lines) }),
    (it) => it.stop(),
  )
  const { ctx } = scenario.service
  const { forwardCode, ...apps } = await openApps(scenario, webhookUrl)
  const url = `mysql://root@127.0.0.1:${lines.database.port}/${testDatabase().name}`
  const { db } = await opened(
    openDatabase({ databaseUrl: url, home: '' }, { poolSize: 8, statementSeconds: STATEMENT_SECONDS }),
    (it) => it.close(),
  )
  Object.assign(ctx, { db })
  const statements = statementFaults(lossy)
  const bypass = () => void Object.assign(ctx, { db: testDatabase().db })
  return {
    ...{ scenario, clock, lines, inbox, stripe, payos, realtime, receiver, apps, forwardCode },
    begin(fault) {
      for (const each of Object.values(lines)) each.begin(null)
      statements.begin(null)
      if (fault === null) return
      if (isStatementFault(fault.fault)) statements.begin(fault.fault)
      else lines[fault.line].begin(fault.fault)
    },
    struck: () => Object.values(lines).reduce((sum, each) => sum + each.struck, statements.struck()),
    bypass,
    async stop() {
      bypass()
      for (const close of closing) await close()
    },
  }
}

const near = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`
const portOf = (url: string): number => Number(new URL(url).port)

function settingsOf(lines: LineRig['lines']): Record<string, string> {
  return {
    ...RELAY_SETTINGS,
    BILLING_SMTP_URL: `smtp://127.0.0.1:${lines['mail server'].port}`,
    BILLING_MAIL_FROM: 'billing@pay.example',
    BILLING_STRIPE_API_BASE: near(lines.Stripe),
    BILLING_PAYOS_API_BASE: near(lines.PayOS),
    BILLING_WEBHOOK_TIMEOUT_MS: '2000',
    FIREBASE_DATABASE_EMULATOR_HOST: `127.0.0.1:${lines.Firebase.port}`,
  }
}

async function openApps(
  { service: { ctx }, app }: ClientScenario,
  webhookUrl: string,
): Promise<Record<AppName, LineApp> & { readonly forwardCode: string }> {
  const selling = async (it: TestApp, price: object): Promise<LineApp> => {
    const plan = await aPlan(ctx, it, { prices: [price] })
    return { ...it, app: await getApp(ctx.db, it.app.id), price: priceId(plan) }
  }
  const sandbox = await anApp(ctx, { webhookUrl })
  await changeApp(ctx, 'trial', sandbox.app, { receipts: true })
  const live = await anApp(ctx, { webhookUrl, sandbox: false, methods: ['bank_transfer'] })
  await enableMethod(ctx, 'trial', live.app, 'card', CARD)
  await enableMethod(ctx, 'trial', live.app, 'payos', PAYOS_KEYS)
  const account = await addBankAccount(ctx, 'trial', { bank: 'ACB', number: TRANSFER.account, holder: 'NGUYEN VAN A' })
  await assignBankAccount(ctx, 'trial', live.app, account.id)
  return {
    client: await selling(app, MONTHLY),
    sandbox: await selling(sandbox, WEEKLY),
    live: await selling(live, MONTHLY),
    forwardCode: account.forwardCode,
  }
}

function isStatementFault(fault: ProgramFault['fault']): fault is StatementFault {
  return 'statement' in fault || fault.kind === 'read-only'
}

/** Statement faults, where the server's protocol is understood. */
function statementFaults(lossy: LossyServer): { begin(fault: StatementFault | null): void; struck(): number } {
  let struck = 0
  const pass = () => 'pass' as const
  const meeting = <Met>(met: Met): Met => {
    struck += 1
    return met
  }
  return {
    struck: () => struck,
    begin(fault) {
      lossy.fateOf = pass
      lossy.fateOfPreparing = pass
      if (fault === null) return
      if (fault.kind === 'read-only') {
        const untilMs = performance.now() + fault.ms
        lossy.fateOf = (statement) =>
          performance.now() < untilMs && WRITE.test(statement) ? meeting(1290 as const) : 'pass'
        return
      }
      let left = fault.statement
      const isMet = (): boolean => (left -= 1) === 0
      if (fault.kind !== 'error') lossy.fateOf = () => (isMet() ? meeting(fault.kind) : 'pass')
      else if (fault.errno === 1461) lossy.fateOfPreparing = () => (isMet() ? meeting(fault.errno) : 'pass')
      else lossy.fateOf = () => (isMet() ? meeting(fault.errno) : 'pass')
    },
  }
}

const WRITE = /^\s*(INSERT|UPDATE|DELETE|REPLACE)\b/i
