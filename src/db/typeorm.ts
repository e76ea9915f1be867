import { createPool, type PoolOptions } from 'mysql2'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { DataSource } from 'typeorm'

/** TypeORM on connections of its own. */
export async function openDataSource(options: PoolOptions): Promise<DataSource> {
  const connection = await createConnection(options)
  const [[found]] = await connection.query<RowDataPacket[]>('SELECT VERSION() AS version')
  await connection.end()
  const source = new DataSource({
    // With the wrong type TypeORM writes SQL that the server does not know.
    type: String(found?.['version']).includes('MariaDB') ? 'mariadb' : 'mysql',
    driver: { createPool: () => createPool(options) },
    logging: false,
  })
  return source.initialize()
}
