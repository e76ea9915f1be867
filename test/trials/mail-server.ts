import { setTimeout as delay } from 'node:timers/promises'
import { bankMails, type BankMail } from '#bank-mail/store.ts'
import { findTransaction, type Transaction } from '#transactions/store.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { FORGED_RESULTS } from '../bank-mail/attacks.ts'
import { aPayment, aTransferApp, RELAY_SETTINGS } from '../bank-mail/bank-shop.ts'
import { bankMail, MAILBOX, signed, TRANSFER, type Transfer } from '../support/bank-mails.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon-process.ts'
import { freePorts } from '../support/free-ports.ts'
import { mailServerLacks, startMailServer, type MailServer } from './mail-server-rig.ts'

const SETTINGS = { ...RELAY_SETTINGS, BILLING_ENV: 'production', BILLING_LOG_LEVEL: 'info' }
const DECIDED_MS = 30_000

/**
 * The whole route of a bank's mail with real programs: swaks, Postfix, OpenDKIM with keys in a real name server, the pipe, the relay, a
 * daemon in production. Genuine mails are accepted once each, including those that arrived while the daemon was down; no forgery is, on
 * a mail server that always adds its results, and on one that adds none to unsigned mails.
 */
export async function mailServer() {
  const lack = mailServerLacks()
  if (lack) throw new Error(`the trial needs ${lack}`)
  const startedMs = performance.now()
  const ctx = presentContext(SETTINGS)
  const [port = 0] = await freePorts(1)
  const daemonSettings = { ...SETTINGS, BILLING_PORT: String(port) }
  const server = await startMailServer({ baseUrl: `http://127.0.0.1:${port}`, secret: SETTINGS.BILLING_RELAY_SECRET })
  let daemon = await startDaemonProcess(daemonSettings)
  try {
    const scenario = await openScenario(ctx, server)
    await scenario.genuine()
    await scenario.forged()
    await daemon.stop()
    const waiting = await scenario.whileDown()
    daemon = await startDaemonProcess(daemonSettings)
    await waiting()
    await check(ctx, scenario)
    return { decisions: await decisions(ctx), seconds: Math.round((performance.now() - startedMs) / 1000) }
  } finally {
    await server.stop()
    await daemon.stop()
  }
}

interface Scenario {
  readonly victim: Transaction
  readonly paid: Transaction[]
  genuine(): Promise<void>
  forged(): Promise<void>
  /** Delivers a mail while the daemon is down; once it is deferred, returns a function that waits for its decision. */
  whileDown(): Promise<() => Promise<void>>
}

async function openScenario(ctx: TestContext, server: MailServer): Promise<Scenario> {
  const app = await aTransferApp(ctx)
  const account = await addBankAccount(ctx, 'trial', {
    bank: 'TIMO',
    number: TRANSFER.account,
    holder: 'NGUYEN VAN A',
    mailbox: MAILBOX,
  })
  await assignBankAccount(ctx, 'trial', app.app, account.id)
  const address = `bank+${account.forwardCode}@pay.example`
  const victim = await aPayment(ctx, app)
  const paid: Transaction[] = []
  const pay = async (): Promise<Transaction> => {
    const payment = await aPayment(ctx, app)
    paid.push(payment)
    return payment
  }
  const expectDecision = async (mail: string, to: string, port: 'outspoken' | 'silent', expected: string) => {
    const before = await newestMail(ctx)
    server.deliver(mail, to, port)
    const decided = describeDecision(await untilDecided(ctx, server, before?.id ?? 0))
    if (decided !== expected)
      throw new Error(`${expected} was expected, and it was ${decided}:\n${mail.slice(0, 1500)}`)
  }
  return {
    victim,
    paid,
    async genuine() {
      for (const port of ['outspoken', 'silent'] as const) {
        const mail = await genuineTimo(await pay())
        await expectDecision(mail, 'bank+0000000000@pay.example', port, 'rejected invalid_recipient')
        await expectDecision(mail, address, port, 'processed')
        await expectDecision(mail, address, port, 'duplicate')
      }
    },
    async forged() {
      const unsigned = bankMail('TIMO', transferFor(victim))
      const forgeries = [
        unsigned,
        await signed(unsigned, 'evil.example'),
        (await genuineTimo(victim)).replace('Subject: ', 'Subject: x '),
        ...Object.values(FORGED_RESULTS).map((results) => results + unsigned),
        ...(await Promise.all(
          Object.values(FORGED_RESULTS).map(async (results) => results + (await signed(unsigned, 'evil.example'))),
        )),
      ]
      for (const mail of forgeries) {
        for (const port of ['outspoken', 'silent'] as const)
          await expectDecision(mail, address, port, 'rejected untrusted_sender')
      }
    },
    async whileDown() {
      const before = await newestMail(ctx)
      server.deliver(await genuineTimo(await pay()), address, 'outspoken')
      await until(server, () => server.log().includes('status=deferred'))
      return async () => {
        server.flush()
        const decided = describeDecision(await untilDecided(ctx, server, before?.id ?? 0))
        if (decided !== 'processed') throw new Error(`a deferred mail was ${decided}`)
      }
    },
  }
}

let movements = 900_000_000

function transferFor(payment: Transaction): Transfer {
  movements += 1
  return { ...TRANSFER, amount: payment.amount, content: payment.transferCode!, movement: movements }
}

async function genuineTimo(payment: Transaction): Promise<string> {
  return signed(bankMail('TIMO', transferFor(payment)), 'timo.vn')
}

async function newestMail(ctx: TestContext): Promise<BankMail | null> {
  return ctx.db.one(bankMails, 'ORDER BY id DESC LIMIT 1')
}

async function untilDecided(ctx: TestContext, server: MailServer, afterId: number): Promise<BankMail> {
  let newest: BankMail | null = null
  await until(server, async () => {
    newest = await newestMail(ctx)
    return (newest?.id ?? 0) > afterId
  })
  return newest as unknown as BankMail
}

async function until(server: MailServer, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DECIDED_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`a mail has no decision:\n${server.log().slice(-3000)}`)
    await delay(50)
  }
}

function describeDecision({ status, reason }: BankMail): string {
  return reason === null ? status : `${status} ${reason}`
}

async function check(ctx: TestContext, { victim, paid }: Scenario): Promise<void> {
  const states = await Promise.all(paid.map(async ({ id }) => (await findTransaction(ctx.db, id))?.status))
  if (states.some((status) => status !== 'completed')) throw new Error(`payments are ${states.join(', ')}`)
  const untouched = await findTransaction(ctx.db, victim.id)
  if (untouched?.status !== 'pending' || untouched.amountReceived !== 0)
    throw new Error('a forgery was booked as money')
  await requireCleanLedger(ctx, 'after all mails')
}

async function decisions(ctx: TestContext): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const mail of await ctx.db.all(bankMails, '')) {
    const decision = describeDecision(mail)
    counts[decision] = (counts[decision] ?? 0) + 1
  }
  return counts
}
