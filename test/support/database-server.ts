import { delimiter, join } from 'node:path'

/** The folder of a MySQL installation (`bin/mysql-packages`), on which the tests run then; null stands for the machine's MariaDB. */
export const MYSQL = process.env['PAYGATE_TEST_MYSQL'] ?? null

// The embedded database takes the first server program on PATH.
if (MYSQL !== null) process.env['PATH'] = [join(MYSQL, 'bin'), process.env['PATH'] ?? ''].join(delimiter)
