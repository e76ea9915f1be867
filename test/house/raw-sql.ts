import { globSync, readFileSync } from 'node:fs'

const STATEMENT =
  /[`'"]\s*(?:SELECT|INSERT INTO|UPDATE [\w${}.`]+ SET|DELETE FROM|TRUNCATE TABLE|RENAME TABLE|ALTER TABLE|(?:CREATE|DROP) (?:TABLE|TRIGGER|DATABASE|USER)|EXPLAIN|ANALYZE TABLE|SHOW [A-Z]+|SET GLOBAL)\b/g

/** Tests that need SQL, and what for. */
export const NEED_SQL = [
  { path: /^ledger\/corruptions\.ts$/, why: 'breaks a row for each rule of the ledger, one after another' },
  {
    path: /^transactions\/ledger\.test\.ts$|^decisions\/money-ledger\.test\.ts$|^ledger\/steps\.test\.ts$/,
    why: 'breaks rows, too: what the ledger reports of them',
  },
  {
    path: /^db\/|^schema-drift\.test\.ts$|^support\/(copies|database|schema|sequence)\.ts$|^http\/(entry-queue|health)\.test\.ts$|^pairs\/side\.ts$|^budgets\/counted\.ts$|^daemon\/metrics\.test\.ts$|^scenarios\/races\.test\.ts$/,
    why: 'is about servers: connections, locks, clocks, migrations, their own tables',
  },
  {
    path: /^upgrade\/|^backups\/|^reports\/backup-restore\.test\.ts$|^cli\/(asked|backups|service|setup|wrong-use)\.test\.ts$|^daemon\/starting\.test\.ts$/,
    why: 'reads and makes other databases: older versions, empty ones, copies',
  },
  { path: /^support\/broken-tables\.ts$/, why: 'makes a server refuse rows, and lack a table' },
  {
    path: /^support\/(query-plans|rows-read)\.ts$|^budgets\/measured\.ts$/,
    why: 'asks the server how it finds rows, and how many it read',
  },
  { path: /^pairs\/world\.ts$/, why: 'copies every table, and puts it back' },
  {
    path: /^trials\//,
    why: 'kills, cuts off and fills servers, and reads what they hold at the end, some of it written by an older version',
  },
  {
    path: /^cli\/hostile-text\.test\.ts$|^cli\/demo\.test\.ts$|^cli\/dry-run\.test\.ts$|^doctor\/secret-leaks\.test\.ts$/,
    why: 'reads or writes each table, whatever its columns',
  },
  { path: /^shared\/log\.test\.ts$/, why: 'logs the error of a statement, and sends none' },
] as const

/**
 * How many statements other tests still write as text. A read goes by the table (`db.one(events, 'WHERE id = ?', [id])`), or by what users
 * see; a state is made by commands, factories or the test clock. The numbers only fall: no file joins this list.
 */
export const STATEMENTS_LEFT: Readonly<Record<string, number>> = {
  'alerts/alerts.test.ts': 8,
  'apps/open-checkouts.test.ts': 1,
  'bank-mail/forwarding-request.test.ts': 1,
  'bank-mail/migrated-mails.test.ts': 2,
  'budgets/queues.test.ts': 2,
  'budgets/rows-read.test.ts': 1,
  'cli/console.test.ts': 2,
  'cli/examples.test.ts': 3,
  'cli/lists.test.ts': 3,
  'cli/payments.test.ts': 3,
  'cli/prompts.test.ts': 2,
  'cli/ssh.test.ts': 1,
  'cli/states.ts': 1,
  'doctor/doctor.test.ts': 8,
  'http/idempotency.test.ts': 3,
}

/** The statements in each test file that has any, but for those that need them. */
export function statementsOfTests(): Record<string, number> {
  const files = globSync('**/*.ts', { cwd: 'test' }).filter((path) => !NEED_SQL.some((need) => need.path.test(path)))
  const counts = files.map(
    (path) => [path, readFileSync(`test/${path}`, 'utf8').match(STATEMENT)?.length ?? 0] as const,
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1)))
}
