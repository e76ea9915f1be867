import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readClusterKind, readClusterNode } from '#db/cluster.ts'
import { isCutOff, readGroupMember } from '#db/group-member.ts'
import { sessionOf } from '#db/session.ts'
import { wrongWithMember } from '#doctor/check-cluster.ts'
import { testDatabase } from '../support/database.ts'

/** The trials `galera` and `mysql-group` query real nodes. */
describe('the state of a cluster node', () => {
  it('is null for a standalone server', async () => {
    const ask = (sql: string) => testDatabase().db.query<unknown[]>(sql)
    expect(await readClusterKind(ask)).to.equal(null)
    expect(await readClusterNode(ask)).to.equal(null)
    expect(await readGroupMember(ask)).to.equal(null)
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

const SERVED = ['ONLINE', 'ONLINE', 'ONLINE']
const CUT_OFF = ['ONLINE', 'UNREACHABLE', 'UNREACHABLE']

/** Answers as the first of these members of a group. */
function memberThat(states: readonly string[] | 'hidden', majoritySeconds = 5) {
  const asked: string[] = []
  const command = (sql: string): Promise<unknown[]> => {
    asked.push(sql)
    if (sql.startsWith('SHOW GLOBAL VARIABLES'))
      return Promise.resolve([
        { Variable_name: 'group_replication_group_name', Value: 'e7b2c2a4-0000-4000-8000-000000000001' },
        { Variable_name: 'group_replication_unreachable_majority_timeout', Value: String(majoritySeconds) },
      ])
    if (!sql.includes('replication_group_members')) return Promise.resolve([])
    if (states === 'hidden') return Promise.reject(Object.assign(new Error('SELECT command denied'), { errno: 1142 }))
    return Promise.resolve(states.map((state, number) => ({ state, isSelf: number === 0 ? 1 : 0 })))
  }
  return { asked, command }
}

describe('a member of a MySQL group', () => {
  it('is cut off where it reaches no majority, or was expelled', async () => {
    const cutOff = async (...states: string[]) => {
      const member = await readGroupMember(memberThat(states).command)
      return isCutOff(member!.group!)
    }
    expect(await cutOff(...SERVED)).to.equal(false)
    expect(await cutOff('ONLINE', 'ONLINE', 'UNREACHABLE')).to.equal(false)
    expect(await cutOff(...CUT_OFF)).to.equal(true)
    expect(await cutOff('ONLINE', 'UNREACHABLE')).to.equal(true)
    expect(await cutOff('ERROR')).to.equal(true)
    expect(await cutOff('OFFLINE')).to.equal(false)
  })

  it('without a majority is left for another host, and goes on to answer reads where it is the only one', async () => {
    const refusal = await sessionOf(10, true)(memberThat(CUT_OFF)).catch((error: unknown) => error)
    expect(refusal).to.include({ errno: 3100 })
    expect(await sessionOf(10, false)(memberThat(CUT_OFF))).to.equal('group')
    expect(await sessionOf(10, true)(memberThat(SERVED))).to.equal('group')
    expect(await sessionOf(10, true)(memberThat('hidden'))).to.equal('group')
  })

  it('is reported by doctor where it is cut off, cannot be seen, or would wait without end', async () => {
    const findings = async (states: readonly string[] | 'hidden', seconds = 5) => {
      const member = await readGroupMember(memberThat(states, seconds).command)
      return wrongWithMember('db1:3306', member!).map(({ ok, detail }) => [ok, detail])
    }
    expect(await findings(SERVED)).to.deep.equal([])
    expect(await findings(CUT_OFF)).to.deep.equal([
      [false, 'db1:3306 is cut off from the majority of its group (ONLINE, 2 of 3 unreachable) and takes no changes'],
    ])
    expect(await findings(['RECOVERING', 'ONLINE'])).to.deep.equal([[true, 'db1:3306 is RECOVERING']])
    expect(await findings(['ONLINE', 'ONLINE', 'UNREACHABLE'])).to.deep.equal([
      [true, 'db1:3306 reaches 2 of 3 members'],
    ])
    expect(await findings('hidden')).to.deep.equal([
      [true, 'db1:3306 belongs to a group, and whether it has a majority is unknown'],
    ])
    expect(await findings(SERVED, 0)).to.deep.equal([
      [true, 'db1:3306 waits without end when it is cut off from the majority'],
    ])
  })
})
