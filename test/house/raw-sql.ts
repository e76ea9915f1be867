import { globSync, readFileSync } from 'node:fs'

const STATEMENT =
  /[`'"]\s*(?:SELECT|INSERT INTO|UPDATE [\w${}.`]+ SET|DELETE FROM|TRUNCATE TABLE|RENAME TABLE|ALTER TABLE|(?:CREATE|DROP) (?:TABLE|TRIGGER|DATABASE|USER)|EXPLAIN|ANALYZE TABLE|SHOW [A-Z]+|SET GLOBAL)\b/

/**
 * Tests that need SQL, and what for. Others read by the table (`db.one(events, 'WHERE id = ?', [id])`) or what users see; a state is made by
 * commands, factories or the test clock, and what these do not make by a typed row or `db.update`.
 */
export const NEED_SQL = [
  { path: /^ledger\/corruptions\.ts$/, why: 'breaks a row for each rule of the ledger, one after another' },
  {
    path: /^ledger\/(verify-ledger|steps)\.test\.ts$|^decisions\/money-ledger\.test\.ts$/,
    why: 'breaks rows, too: what the ledger reports of them',
  },
  {
    path: /^db\/|^schema-drift\.test\.ts$|^support\/(copies|database|schema|sequence)\.ts$|^http\/(entry-queue|health)\.test\.ts$|^pairs\/side\.ts$|^budgets\/counted\.ts$|^daemon\/metrics\.test\.ts$|^scenarios\/races\.test\.ts$/,
    why: 'is about servers: connections, locks, clocks, migrations, their own tables',
  },
  {
    path: /^upgrade\/|^backups\/|^reports\/backup-restore\.test\.ts$|^cli\/(asked|backups|service|setup|wrong-use)\.test\.ts$|^daemon\/threads\.test\.ts$/,
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

/** The test files that write a statement as text. */
export function filesWithSql(): string[] {
  return globSync('**/*.ts', { cwd: 'test' }).filter((path) => STATEMENT.test(readFileSync(`test/${path}`, 'utf8')))
}
