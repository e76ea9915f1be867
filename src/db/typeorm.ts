import type { Pool } from 'mysql2'
import { DataSource } from 'typeorm'
import { words } from './columns.ts'
import { sendOn } from './mysql-adapter.ts'
import { queriesOver } from './queries.ts'
import { shape } from './table.ts'

const versions = shape({ version: words('version', 255) })

/** TypeORM on the connections of the pool. Do not destroy it: that would end the pool. */
export async function openDataSource(pool: Pool): Promise<DataSource> {
  const found = await queriesOver(sendOn(pool)).one(versions, 'SELECT VERSION() AS version')
  const source = new DataSource({
    // With the wrong type TypeORM writes SQL that the server does not know.
    type: found?.version.includes('MariaDB') ? 'mariadb' : 'mysql',
    driver: { createPool: () => pool },
    logging: false,
  })
  return source.initialize()
}
