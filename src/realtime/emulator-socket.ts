import { randomHex } from '#shared/crypto.ts'
import { withTimeout, type Budget } from '#shared/budget.ts'
import type { RealtimeNode } from './node.ts'

/** Where an emulator keeps a node. */
export interface EmulatorAddress {
  readonly host: string
  readonly namespace: string
  readonly keys: readonly string[]
}

/**
 * Replaces a node by the SDK's own protocol, for emulators that support nothing else (they answer REST with 426). The SDK's `set` waits
 * for an answer without a limit, hence the budget. Its connection is closed with the write, so that nothing stale is sent later.
 */
export async function replaceBySocket(address: EmulatorAddress, node: RealtimeNode, leftMs: Budget): Promise<void> {
  const [{ deleteApp, initializeApp }, { getDatabase }] = await Promise.all([
    import('firebase-admin/app'),
    import('firebase-admin/database'),
  ])
  const credential = { getAccessToken: () => Promise.resolve({ access_token: 'owner', expires_in: 3600 }) }
  const databaseURL = `http://${address.host}?ns=${encodeURIComponent(address.namespace)}`
  const app = initializeApp({ credential, databaseURL, projectId: address.namespace }, `emulator ${randomHex(8)}`)
  const database = getDatabase(app)
  try {
    const late = new Error(`the emulator at ${address.host} did not take the write in time`)
    await withTimeout(database.ref(address.keys.join('/')).set(node), leftMs(), late)
  } finally {
    database.goOffline()
    await deleteApp(app)
  }
}
