import { delimiter, join } from 'node:path'

/** The folder of a MySQL installation (`bin/database-packages mysql`), on which the tests run then; null stands for the machine's MariaDB. */
export const MYSQL = process.env['PAYGATE_TEST_MYSQL'] ?? null

export const CLIENT_PROGRAM = MYSQL === null ? 'mariadb' : 'mysql'
export const DUMP_PROGRAM = MYSQL === null ? 'mariadb-dump' : 'mysqldump'

/** Reads the certificate again. */
export const RELOAD_TLS = MYSQL === null ? 'FLUSH SSL' : 'ALTER INSTANCE RELOAD TLS'

/** Names that differ between the two families. */
export const ISOLATION_LEVEL = MYSQL === null ? '@@tx_isolation' : '@@transaction_isolation'
export const EXACT_COLLATION = MYSQL === null ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
export const STATEMENT_SECONDS = MYSQL === null ? '@@max_statement_time' : '@@max_execution_time DIV 1000'

// The embedded database takes the first server program on PATH.
if (MYSQL !== null) process.env['PATH'] = [join(MYSQL, 'bin'), process.env['PATH'] ?? ''].join(delimiter)
