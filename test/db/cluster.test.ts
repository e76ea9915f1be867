import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isClusterNode, readClusterNode } from '#db/cluster.ts'
import { testDatabase } from '../support/database.ts'

/** Of real nodes, the trial `galera` asks. */
describe('a node of a cluster', () => {
  it('is none where the server is alone', async () => {
    const source = await testDatabase().db.dataSource()
    const ask = (sql: string) => source.query<unknown[]>(sql)
    expect(await isClusterNode(ask)).to.equal(false)
    expect(await readClusterNode(ask)).to.equal(null)
  })

  it('says whether it belongs to the majority, its state, how many nodes there are, and how it changes its schema', async () => {
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
