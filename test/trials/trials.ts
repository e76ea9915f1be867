import { cardDuplicates } from './card-duplicates.ts'
import { clockSkew } from './clock-skew.ts'
import { crashPayments } from './crash-payments.ts'
import { DATABASE_OUTAGES, databaseOutage } from './database-outage.ts'
import { DATABASES, databases } from './databases.ts'
import { deadlockStorm } from './deadlock-storm.ts'
import { galera } from './galera.ts'
import { httpAbuse } from './http-abuse.ts'
import { killedHandlers } from './killed-handlers.ts'
import { killStorm } from './kill-storm.ts'
import { mailFuzz } from './mail-fuzz.ts'
import { mailServer } from './mail-server.ts'
import { killedMailers } from './killed-mailers.ts'
import { operatorWalk } from './operator-walk.ts'
import { overload } from './overload.ts'
import { debianPackage } from './package.ts'
import { paymentRace } from './payment-race.ts'
import { quoteHistories } from './quote-histories.ts'
import { OUTAGES, realtimeOutage } from './realtime-outage.ts'
import { haproxy, router } from './router.ts'
import { stopOnHungReceiver, stopUnderLoad } from './stop-under-load.ts'
import { steadyMemory } from './steady-memory.ts'
import { steadyRequests } from './steady-requests.ts'
import { twoDaemons } from './two-daemons.ts'
import { upgradeUnderLoad } from './upgrade-under-load.ts'
import { allHistories } from './histories.ts'
import { lineFaults } from './line.ts'
import { mutants } from './mutants.ts'
import { mysqlGroup } from './mysql-group.ts'
import { caseNamed, everyPair, pairNames } from './pairs.ts'

/** What the command line may set. */
export interface TrialOptions {
  readonly seed: number | null
  readonly depth: number | null
  readonly steps: number | null
  /** One case of a trial that lists its cases. */
  readonly case: string | null
  readonly print: (line: string) => void
}

export interface Trial {
  /** Null if nothing is random. */
  readonly seed: number | null
  /** What the service has to do, what goes wrong meanwhile, and what must hold. */
  readonly load: string
  readonly faults: string
  readonly holds: string
  /** False for a trial of pure rules. */
  readonly needsDatabase: boolean
  /** The names of its cases, each of which can be run alone. */
  readonly cases?: () => readonly string[]
  /** Throws for a case that it does not have. */
  readonly requireCase?: (name: string) => void
  readonly run: (options: TrialOptions) => Promise<unknown>
}

interface Texts {
  readonly load: string
  readonly faults: string
  readonly holds: string
}

const fixed = (texts: Texts, run: () => Promise<unknown>): Trial => ({ ...texts, seed: null, needsDatabase: true, run })
const seeded = (seed: number, texts: Texts, run: (seed: number) => Promise<unknown>): Trial => ({
  ...texts,
  seed,
  needsDatabase: true,
  run: (options) => run(options.seed ?? seed),
})

const LEDGER = 'the ledger is clean'

/** The long form of each trial; the short ones are in the test suite. Each throws if a condition fails. */
export const TRIALS: Readonly<Record<string, Trial>> = {
  histories: {
    seed: 1,
    load: 'every history of 8 steps of one end user: open, pay late, twice and in part, switch, discount, end, refund, move',
    faults: 'none',
    holds: 'the pure rules do what a model written from the rules does, after each step',
    needsDatabase: false,
    async run({ seed, depth, print }) {
      const figures = await allHistories({ depth: depth ?? 8, seed: seed ?? 1 })
      print(
        `seed ${figures.seed}, depth ${figures.depth}, ${figures.histories} histories, ${figures.perSecond} a second`,
      )
      return figures
    },
  },
  mutants: {
    seed: null,
    load: 'the histories, by increasing depth',
    faults: 'one wrong line in the rules at a time',
    holds: 'each is found',
    needsDatabase: false,
    run: ({ depth, print }) => mutants({ mostDepth: depth ?? 7, onFound: print }),
  },
  line: {
    seed: 27,
    load: 'purchases by test method, card, PayOS and transfer, renewals, refunds, reminders, webhooks and nodes of a month',
    faults:
      'a program of the seed: each line delays, is cut, split, frozen or refuses, the database with its own errors',
    holds: `each answer is true, nothing is lost, nothing comes twice, nodes are right, ${LEDGER}`,
    needsDatabase: true,
    run: ({ seed, steps, print }) => lineFaults({ seed: seed ?? 27, steps: steps ?? 120, print }),
  },
  pairs: {
    seed: 41,
    load: 'every two commands that can meet on an end user, a transaction, a payment, an event or a mail, in the orders of their writes; where a pair has many, the seed chooses half of 10',
    faults:
      'a kill of either before each write, a lost answer to COMMIT that took place or did not, each in an order that the seed chooses',
    holds: `the rows and answers are those of a serial order, ${LEDGER}`,
    needsDatabase: true,
    cases: pairNames,
    requireCase: (name) => void caseNamed(name),
    run: ({ seed, case: wanted, print }) => {
      const only = wanted === null ? {} : caseNamed(wanted)
      return everyPair({ seed: seed ?? 41, mostOrders: 10, faults: 1, onFailure: print, ...only })
    },
  },
  'crash-payments': fixed(
    {
      load: '200 payments by card, through webhooks',
      faults: 'five kills of the daemon (SIGKILL)',
      holds: `each payment is applied once, its webhooks arrive, ${LEDGER}`,
    },
    () => crashPayments({ payments: 200, kills: 5 }),
  ),
  'card-one-event': seeded(
    11,
    {
      load: 'one card event, 10,000 times over 50 connections to three daemons',
      faults: 'duplicates',
      holds: `one effect, each answer is 200, ${LEDGER}`,
    },
    (seed) => cardDuplicates({ payments: 1, copies: 10_000, connections: 50, daemons: 3, seed }),
  ),
  'card-many-events': seeded(
    12,
    {
      load: '500 card events, 20 times each, over 50 connections to three daemons',
      faults: 'duplicates in any order',
      holds: `500 effects, each answer is 200, ${LEDGER}`,
    },
    (seed) => cardDuplicates({ payments: 500, copies: 20, connections: 50, daemons: 3, seed }),
  ),
  'killed-handlers': fixed(
    {
      load: 'a card and a PayOS notification',
      faults: 'a kill between every two statements of the handler',
      holds: `the repeated notification completes the payment, ${LEDGER}`,
    },
    () => killedHandlers({ every: 1 }),
  ),
  'kill-storm': seeded(
    31,
    {
      load: 'units of work of 200 end users',
      faults: 'queries and connections killed, sessions that fault',
      holds: `no unit is half done, ${LEDGER}`,
    },
    (seed) => killStorm({ endUsers: 200, seed, sessionFaults: 0.05 }),
  ),
  'mail-fuzz': seeded(
    22,
    {
      load: '20,000 mutated bank mails',
      faults: 'broken MIME, charsets, headers',
      holds: 'each is answered, only genuine ones count, the main thread is never held for long',
    },
    (seed) => mailFuzz({ mails: 20_000, seed, connections: 4 }),
  ),
  'mail-server': fixed(
    {
      load: 'bank mails through a real mail server',
      faults: 'forged, forwarded and changed mails',
      holds: `only the genuine ones are booked, ${LEDGER}`,
    },
    () => mailServer(),
  ),
  'killed-mailers': seeded(
    6,
    {
      load: '600 reminders',
      faults: "60 kills around the mail server's answers",
      holds: `no mail goes out twice, the unconfirmed ones are listed, ${LEDGER}`,
    },
    (seed) => killedMailers({ mails: 600, kills: 60, seed }),
  ),
  'steady-memory': fixed({ load: '20 sweeps of 500 mails', faults: 'none', holds: 'the heap does not grow' }, () =>
    steadyMemory({ sweeps: 20, mailsPerSweep: 500, mostGrowthKb: 4000 }),
  ),
  'steady-requests': fixed({ load: 'a million requests', faults: 'none', holds: 'the heap does not grow' }, () =>
    steadyRequests({ requests: 1_000_000, loadSeconds: 3, mostGrowthKb: 8000 }),
  ),
  'database-outage': fixed(
    {
      load: '400 payments of 40 payers',
      faults: 'the database restarts, is killed, freezes for a minute',
      holds: `errors are 503 in time, it recovers, ${LEDGER}`,
    },
    () => databaseOutage({ outages: DATABASE_OUTAGES, payments: 400, payers: 40, frozenMs: 60_000 }),
  ),
  'stop-under-load': seeded(
    15,
    {
      load: 'calls over 20 kept connections',
      faults: '30 times SIGTERM',
      holds: `each accepted call is answered, leases are given back, ${LEDGER}`,
    },
    (seed) => stopUnderLoad({ stops: 30, connections: 20, seed }),
  ),
  'stop-on-hung-receiver': fixed(
    { load: 'a webhook', faults: 'its receiver never answers, SIGTERM twice', holds: 'the daemon stops in time' },
    () => stopOnHungReceiver({ timeoutMs: 60_000 }),
  ),
  'deadlock-storm': seeded(
    18,
    {
      load: '2,000 payments',
      faults: '30 rivals that take the same locks in another order',
      holds: `conflicts are repeated and never half done, ${LEDGER}`,
    },
    (seed) => deadlockStorm({ payments: 2000, rivals: 30, seed }),
  ),
  'http-abuse': fixed(
    {
      load: 'honest calls',
      faults: '1,000 slow connections, smuggled and malformed requests',
      holds: 'honest calls are served, the others are cut off',
    },
    () => httpAbuse({ slowSockets: 1000, slowBodies: 100 }),
  ),
  overload: fixed(
    {
      load: '2,000 checkouts a second, or half as many again as the daemon opens',
      faults: 'lasting overload',
      holds: `accepted calls are served in time, notifications and webhooks go on, ${LEDGER}`,
    },
    () =>
      overload({
        perSecond: 2000,
        times: 1.5,
        seconds: 20,
        capacitySeconds: 10,
        notifications: 100,
        reminders: 50,
        mostP99Ms: 2000,
        leastShare: 0.8,
      }),
  ),
  'two-daemons': fixed(
    {
      load: '200 payments and 100 reminders',
      faults: 'two daemons on one database',
      holds: `nothing is sent twice, ${LEDGER}`,
    },
    () => twoDaemons({ payments: 200, reminders: 100, daemons: 2 }),
  ),
  galera: fixed(
    {
      load: '800 payments of twelve payers at three nodes',
      faults: 'kill -9 of one node and of two, a migration',
      holds: `no payment is lost or doubled, ${LEDGER}`,
    },
    () => galera({ payments: 200, endUsers: 20, reminders: 40, payers: 12 }),
  ),
  ...Object.fromEntries(
    (Object.keys(DATABASES) as (keyof typeof DATABASES)[]).map((kind) => [
      `databases-${kind}`,
      {
        load: 'checkouts, payments and trials at once, webhooks, reminders, bank mails',
        faults: 'kill -9 of the server or the primary, and of the daemon',
        holds: `each database does the same, doctor finds nothing, ${LEDGER}`,
        seed: null,
        // It brings one of its own.
        needsDatabase: false,
        run: () => databases(kind, { payments: 60, reminders: 10, trials: 8, rounds: 12 }),
      },
    ]),
  ),
  'mysql-group': fixed(
    {
      load: '600 payments of six payers at three members',
      faults: 'the primary is killed, frozen, relieved, cut off; two of three are killed',
      holds: `no payment is lost or doubled, each answer comes within 12 s, ${LEDGER}`,
    },
    () => mysqlGroup({ payments: 100, endUsers: 10, reminders: 20, payers: 6 }),
  ),
  router: fixed(
    {
      load: '200 payments through MySQL Router to one server, 400 to a group',
      faults: '500 transactions with crafted values, kill -9 of the primary',
      holds: `each is stored as it is, payments go on within 45 s, ${LEDGER}`,
    },
    () => router({ payments: 200, transactions: 500, callers: 20 }),
  ),
  haproxy: fixed(
    {
      load: '400 payments through HAProxy to a MySQL group',
      faults: 'kill -9 of the primary',
      holds: `payments go on within 45 s, ${LEDGER}`,
    },
    () => haproxy(200),
  ),
  'clock-skew-seconds': fixed(
    {
      load: '200 events and reminders of two daemons',
      faults: 'clocks a second apart',
      holds: 'nothing is sent twice',
    },
    () => clockSkew({ skewMs: 1000, events: 200 }),
  ),
  'clock-skew-hours': fixed(
    {
      load: '200 events and reminders of two daemons',
      faults: 'clocks five hours apart',
      holds: 'nothing is sent twice',
    },
    () => clockSkew({ skewMs: 5 * 3_600_000, events: 200 }),
  ),
  'operator-walk': fixed(
    {
      load: 'the documented installation on a fresh Debian 12',
      faults: 'an upgrade while payers pay, a power cut, a restore elsewhere',
      holds: `each block works as it is pasted, ${LEDGER}`,
    },
    () => operatorWalk(),
  ),
  package: fixed(
    {
      load: 'the Debian package on bare machines of Debian 12 and 13, and 10,000 payments',
      faults:
        'a backup, an upgrade and a power cut while payers pay, a restore elsewhere; removed, installed again, purged',
      holds: `a payment over TLS after one setup in under 5 minutes, the same sums everywhere, ${LEDGER}`,
    },
    () => debianPackage({ versions: [12, 13], payments: 10_000 }),
  ),
  upgrade: fixed(
    {
      load: 'payments through a proxy in front of two daemons, then of one',
      faults:
        'a version that does not start, then an upgrade from the version before migrations in two steps, and back',
      holds: `two daemons refuse no call, one is away for less than 5 s, sums agree, ${LEDGER}`,
    },
    () => upgradeUnderLoad({ payers: 3, payments: 100 }),
  ),
  'quote-histories': seeded(
    7,
    {
      load: '2,000 random histories of 30 steps, on the database',
      faults: 'late, double and part payments in any order',
      holds: `plan, end, flags, events and pages are those of the model, ${LEDGER}`,
    },
    (seed) => quoteHistories({ histories: 2000, seed }),
  ),
  'payment-race': seeded(
    14,
    {
      load: '500 rounds of one payment',
      faults: 'card, bank, operator and status page confirm it at once',
      holds: `one of them wins, ${LEDGER}`,
    },
    (seed) => paymentRace({ rounds: 500, seed }),
  ),
  ...Object.fromEntries(
    OUTAGES.map((outage) => [
      `realtime-${outage}`,
      seeded(
        13,
        {
          load: 'payments that write premium into Firebase',
          faults: `the database there is ${outage}`,
          holds: `payments complete, and the writes are made up for, ${LEDGER}`,
        },
        (seed) => realtimeOutage(outage, 50, seed),
      ),
    ]),
  ),
}
