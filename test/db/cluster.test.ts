import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isClusterNode, readClusterNode } from '#db/cluster.ts'
import { testDatabase } from '../support/database.ts'

/** The trial `galera` queries real nodes. */
describe('the state of a cluster node', () => {
  it('is null for a standalone server', async () => {
    const ask = (sql: string) => testDatabase().db.query<unknown[]>(sql)
    expect(await isClusterNode(ask)).to.equal(false)
    expect(await readClusterNode(ask)).to.equal(null)
  })

  it('has its membership of the majority, its state, the number of nodes, and its schema-change method', async () => {
    const rows = [
      { Variable_name: 'wsrep_OSU_method', Value: 'RSU' },
      { Variable_name: 'wsrep_on', Value: 'ON' },
      { Variable_name: 'wsrep_cluster_status', Value: 'non-Primary' },
      { Variable_name: 'wsrep_local_state_comment', Value: 'Initialized' },
      { Variable_name: 'wsrep_cluster_size', Value: '1' },
    ]
    expect(await readClusterNode(() => Promise.resolve(rows))).to.deep.equal({
      isPrimary: false,
      state: 'Initialized',
      size: 1,
      schemaMethod: 'RSU',
    })
  })
})
