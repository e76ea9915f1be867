import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { testDatabase } from './support/database.ts'
import { SCHEMA_FILE, schemaText } from './support/schema.ts'
import { TABLES, type AnyTable } from './support/tables.ts'

interface Column {
  table: string
  name: string
  type: string
  length: number | null
  precision: number | null
  isNullable: string
  isGenerated: number
}

/** Types that one description in the code stands for: the code says int and varchar, the table may be narrower. */
const KIND: Readonly<Record<string, string>> = { char: 'varchar', tinyint: 'int', smallint: 'int' }

/** Columns that no version reads any more, and that a later migration of the phase `contract` drops. */
const UNUSED: Readonly<Record<string, readonly string[]>> = { transactions: ['quoted_end', 'quoted_revision'] }

describe('the tables that the migrations make', () => {
  it('are exactly those that the stores describe', async () => {
    const made = new Set((await columnsMade()).map(({ table }) => table))
    const described = TABLES.map(({ name }) => name)
    expect([...made].sort()).to.deep.equal(described.sort())
  })

  it('have exactly the columns that the stores describe', async () => {
    const made = await columnsMade()
    for (const described of TABLES) {
      const unused = UNUSED[described.name] ?? []
      const ofTable = made.filter(({ table, name }) => table === described.name && !unused.includes(name)).map(lineOf)
      expect(ofTable.sort(), described.name).to.deep.equal(linesOf(described).sort())
    }
  })

  it('have exactly the keys, indexes, defaults and collations that stand in schema.txt (npm run schema writes it)', async () => {
    expect(await schemaText(testDatabase().db)).to.equal(readFileSync(SCHEMA_FILE, 'utf8'))
  })
})

describe('the unique keys that the code relies on', () => {
  it('are made by the migrations', () => {
    const sources = globSync('src/**/*.ts').map((path) => readFileSync(path, 'utf8'))
    const named = sources.flatMap((code) =>
      [...code.matchAll(/(?:insertedNew|unlessDuplicate|isDuplicate)\(\s*(?:error,\s*)?'(\w+)'/g)].map(
        ([, key]) => key!,
      ),
    )
    const keys = new Set(named.filter((key) => key !== 'PRIMARY'))
    expect(keys.size).to.be.above(10)
    const schema = readFileSync(SCHEMA_FILE, 'utf8')
    expect([...keys].filter((key) => !schema.includes(`UNIQUE KEY \`${key}\``))).to.deep.equal([])
  })
})

async function columnsMade(): Promise<Column[]> {
  return testDatabase().db.query(
    `SELECT table_name AS \`table\`, column_name AS name, data_type AS type, character_maximum_length AS length,
            datetime_precision AS \`precision\`, is_nullable AS isNullable, extra LIKE '%auto_increment%' AS isGenerated
     FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name NOT IN ('migrations', 'schema_lease')`,
  )
}

function lineOf({ name, type, length, precision, isNullable, isGenerated }: Column): string {
  const kind = KIND[type] ?? type
  const size = kind === 'varchar' ? length : kind === 'datetime' ? precision : ''
  return describeColumn(name, kind, size, isNullable === 'YES', isGenerated === 1)
}

function linesOf({ options }: AnyTable): string[] {
  return Object.entries(options).map(
    ([property, { name = property, type, length, precision, nullable, generated }]) => {
      const kind = KIND[type] ?? type
      const size = kind === 'varchar' ? length : kind === 'datetime' ? precision : ''
      return describeColumn(name, kind, size ?? null, nullable ?? false, generated !== undefined)
    },
  )
}

function describeColumn(
  name: string,
  kind: string,
  size: number | string | null,
  isNullable: boolean,
  isGenerated: boolean,
): string {
  return `${name} ${kind}(${size ?? ''})${isNullable ? ' null' : ''}${isGenerated ? ' generated' : ''}`
}
