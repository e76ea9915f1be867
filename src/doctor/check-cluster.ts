import type { Context } from '#context.ts'
import type { ClusterNode } from '#db/cluster.ts'
import { isCutOff, type GroupMember, type GroupState } from '#db/group-member.ts'
import { inspectServers } from '#db/inspect-servers.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'

/** Each server of `BILLING_DATABASE_URL`, if there are several or it belongs to a cluster. */
export async function checkCluster({ config: { databaseUrl } }: Pick<Context, 'config'>): Promise<CheckResult[]> {
  if (databaseUrl === null) return []
  const servers = await inspectServers(databaseUrl)
  const results = servers.flatMap(({ place, node, member, failure }) => {
    if (failure !== null)
      return [failed('cluster', `${place}: ${failure}`, 'start it, or take it out of BILLING_DATABASE_URL')]
    return [
      ...(node === null ? [] : wrongWithNode(place, node)),
      ...(member === null ? [] : wrongWithMember(place, member)),
    ]
  })
  if (results.length > 0) return results
  const sizes = servers.flatMap(({ node, member }) => node?.size ?? member?.group?.size ?? [])
  return sizes.length === 0
    ? []
    : [passed('cluster', `${Math.min(...sizes)} nodes, synced: ${servers.map(({ place }) => place).join(', ')}`)]
}

const MEMBERS_TABLE = 'performance_schema.replication_group_members'

/** What is wrong with a member of a MySQL group. */
export function wrongWithMember(place: string, { group, majoritySeconds }: GroupMember): CheckResult[] {
  return [
    ...(group === null
      ? [
          warning(
            'cluster',
            `${place} belongs to a group, and whether it has a majority is unknown`,
            `let the user of BILLING_DATABASE_URL see it: GRANT SELECT ON ${MEMBERS_TABLE}`,
          ),
        ]
      : wrongWithGroup(place, group)),
    ...(majoritySeconds === 0
      ? [
          warning(
            'cluster',
            `${place} waits without end when it is cut off from the majority`,
            'SET PERSIST group_replication_unreachable_majority_timeout = 5',
          ),
        ]
      : []),
  ]
}

function wrongWithGroup(place: string, group: GroupState): CheckResult[] {
  const { state, size, unreachable } = group
  if (isCutOff(group))
    return [
      failed(
        'cluster',
        `${place} is cut off from the majority of its group (${state}, ${unreachable} of ${size} unreachable) and takes no changes`,
        'repair its network; if the others are gone for good, bootstrap the group anew from this one',
      ),
    ]
  if (state !== 'ONLINE')
    return [warning('cluster', `${place} is ${state}`, 'it serves nobody until it is ONLINE: START GROUP_REPLICATION')]
  if (unreachable > 0)
    return [warning('cluster', `${place} reaches ${size - unreachable} of ${size} members`, 'start the others')]
  return []
}

/** What is wrong with a node of a Galera cluster. */
function wrongWithNode(place: string, { isPrimary, state, schemaMethod }: ClusterNode): CheckResult[] {
  if (!isPrimary)
    return [
      failed(
        'cluster',
        `${place} is cut off from the majority and serves nobody`,
        "repair its network; if the others are gone for good: SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES' at this one",
      ),
    ]
  return [
    ...(state === 'Synced'
      ? []
      : [warning('cluster', `${place} is ${state}`, 'it lags behind the others until it is Synced')]),
    ...(schemaMethod === 'TOI'
      ? []
      : [
          warning(
            'cluster',
            `${place} has wsrep_osu_method ${schemaMethod}`,
            "migrate needs TOI: SET GLOBAL wsrep_osu_method = 'TOI'",
          ),
        ]),
  ]
}
