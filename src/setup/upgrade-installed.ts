import type { Context } from '#context.ts'
import { openDatabase, type Database } from '#db/connect.ts'
import { daemonService } from './daemon-unit.ts'
import { PACKAGE_FOLDERS } from './program-copies.ts'
import { previewUpgrade, upgradePackage, type Service, type Upgraded, type UpgradeOptions } from './upgrade-package.ts'

const POOL_SIZE = 4

type Tools = Pick<Context, 'config' | 'clock'>

/** Upgrades the service of this machine to the package that is installed, as `upgradePackage` does. */
export async function upgradeInstalled(tools: Tools, options: Omit<UpgradeOptions, 'folders'>): Promise<Upgraded> {
  return onThisMachine(tools, (db, service) =>
    upgradePackage({ ...tools, db }, service, { ...options, folders: PACKAGE_FOLDERS }),
  )
}

/** What `upgradeInstalled` would do now. */
export async function previewInstalled(tools: Tools, isWithoutBackup: boolean): ReturnType<typeof previewUpgrade> {
  return onThisMachine(tools, (db, service) =>
    previewUpgrade({ ...tools, db }, service, { folders: PACKAGE_FOLDERS, isWithoutBackup }),
  )
}

async function onThisMachine<T>({ config }: Tools, work: (db: Database, service: Service) => Promise<T>): Promise<T> {
  const service = daemonService(config)
  const { db, close } = await openDatabase(config, { poolSize: POOL_SIZE })
  try {
    return await work(db, service)
  } finally {
    await close()
  }
}
