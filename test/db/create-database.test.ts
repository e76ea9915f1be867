import { expect } from 'chai'
import { createConnection } from 'mysql2/promise'
import { describe, it } from 'mocha'
import { databaseState, provisionStatements } from '#db/create-database.ts'
import { testDatabase } from '../support/database.ts'

describe('the database that setup makes', () => {
  it('lets its user into no other database, whatever its name has in common with it', async () => {
    const { socketPath, name } = testDatabase()
    const [own, similar] = [`${name}_own`, `${name}Xown`]
    const urlOf = (database: string) =>
      `mysql://${own}:secret@localhost/${database}?socketPath=${encodeURIComponent(socketPath)}`
    const root = await createConnection({ socketPath, user: 'root', multipleStatements: true })
    try {
      await root.query(`CREATE DATABASE ${similar}`)
      await root.query(provisionStatements(urlOf(own)))
      expect(await databaseState(urlOf(own))).to.equal('usable')
      expect(await databaseState(urlOf(similar))).to.equal('denied')
    } finally {
      for (const database of [own, similar]) await root.query(`DROP DATABASE IF EXISTS ${database}`)
      for (const host of ['localhost', '127.0.0.1', '::1']) await root.query(`DROP USER IF EXISTS '${own}'@'${host}'`)
      await root.end()
    }
  })
})
