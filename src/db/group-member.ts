import { show, type Ask } from './cluster.ts'
import { hasErrno } from './database-error.ts'

/** The state of a member of a group (MySQL Group Replication). */
export interface GroupMember {
  /** The state of the group as this member sees it; null if its user may not read it. */
  readonly group: GroupState | null
  /** Seconds without a majority after which it refuses changes; 0: changes wait indefinitely. */
  readonly majoritySeconds: number
}

export interface GroupState {
  /** `ONLINE`; `RECOVERING` while it catches up; `ERROR` after the group expelled it; `OFFLINE` if it never joined. */
  readonly state: string
  readonly size: number
  readonly unreachable: number
}

/** Reads the current state of the member; null if the server has no group. */
export async function readGroupMember(ask: Ask): Promise<GroupMember | null> {
  const variables = await show(
    ask,
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('group_replication_group_name', 'group_replication_unreachable_majority_timeout')",
  )
  if ((variables.get('group_replication_group_name') ?? '') === '') return null
  const majoritySeconds = Number(variables.get('group_replication_unreachable_majority_timeout'))
  return { group: await readGroupState(ask), majoritySeconds }
}

interface MemberRow {
  readonly state: string
  readonly isSelf: number
}

const MEMBERS = `SELECT MEMBER_STATE AS state, MEMBER_ID = @@server_uuid AS isSelf
  FROM performance_schema.replication_group_members`
/** The user has no SELECT on the table. */
const DENIED_ERRNO = 1142

/** The group as the member sees it; null if its user may not read it. */
export async function readGroupState(ask: Ask): Promise<GroupState | null> {
  try {
    const members = (await ask(MEMBERS)) as readonly MemberRow[]
    return {
      state: members.find(({ isSelf }) => isSelf === 1)?.state ?? 'OFFLINE',
      size: members.length,
      unreachable: members.filter(({ state }) => state === 'UNREACHABLE').length,
    }
  } catch (error) {
    if (hasErrno(error, DENIED_ERRNO)) return null
    throw error
  }
}

/** Whether the member can commit nothing, because it reaches no majority or the group expelled it. */
export function isCutOff({ state, size, unreachable }: GroupState): boolean {
  return state === 'ERROR' || unreachable * 2 >= size
}
