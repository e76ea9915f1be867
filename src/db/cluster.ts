/** Sends a statement without parameters; returns its rows. */
export type Ask = (sql: string) => Promise<readonly unknown[]>

/** The state of a node of a Galera cluster. */
export interface ClusterNode {
  /** Whether it belongs to the majority. Any other node refuses statements. */
  readonly isPrimary: boolean
  /** `Synced`; `Donor/Desynced` while another node or a backup copies from it. */
  readonly state: string
  readonly size: number
  /** How the node changes the schema: `TOI` on all nodes at once, `RSU` on itself alone. */
  readonly schemaMethod: string
}

/** Reads the current state of the node; null if the server is not part of a cluster. Needs neither privileges nor a majority. */
export async function readClusterNode(ask: Ask): Promise<ClusterNode | null> {
  const variables = await show(ask, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_osu_method')")
  if (variables.get('wsrep_on') !== 'ON') return null
  const status = await show(
    ask,
    `SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_local_state_comment', 'wsrep_cluster_size')`,
  )
  return {
    isPrimary: status.get('wsrep_cluster_status') === 'Primary',
    state: status.get('wsrep_local_state_comment') ?? 'unknown',
    size: Number(status.get('wsrep_cluster_size') ?? 0),
    schemaMethod: variables.get('wsrep_osu_method') ?? 'unknown',
  }
}

/** Which kind of cluster the server belongs to: MariaDB's, MySQL's, or none. */
export type ClusterKind = 'galera' | 'group' | null

export async function readClusterKind(ask: Ask): Promise<ClusterKind> {
  const variables = await show(
    ask,
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_group_name')",
  )
  if (variables.get('wsrep_on') === 'ON') return 'galera'
  return (variables.get('group_replication_group_name') ?? '') === '' ? null : 'group'
}

/** Whether the node accepts statements now. */
export async function isReady(ask: Ask): Promise<boolean> {
  return (await show(ask, "SHOW GLOBAL STATUS LIKE 'wsrep_ready'")).get('wsrep_ready') === 'ON'
}

/** Runs a SHOW of variables or of status; returns the values by name, in lower case. */
export async function show(ask: Ask, sql: string): Promise<ReadonlyMap<string, string>> {
  const rows = (await ask(sql)) as readonly { readonly Variable_name: string; readonly Value: string }[]
  // Servers differ in the case of the names.
  return new Map(rows.map(({ Variable_name: name, Value: value }) => [name.toLowerCase(), value]))
}
