import type { Context } from '#context.ts'
import { openDatabase } from '#db/connect.ts'
import { daemonService } from './daemon-unit.ts'
import { PACKAGE_FOLDERS } from './program-copies.ts'
import { upgradePackage, type Upgraded, type UpgradeOptions } from './upgrade-package.ts'

const POOL_SIZE = 4

/** Upgrades the service of this machine to the package that is installed, as `upgradePackage` does. */
export async function upgradeInstalled(
  { config, clock }: Pick<Context, 'config' | 'clock'>,
  options: Omit<UpgradeOptions, 'folders'>,
): Promise<Upgraded> {
  const service = daemonService(config)
  const { db, close } = await openDatabase(config, { poolSize: POOL_SIZE })
  try {
    return await upgradePackage({ db, config, clock }, service, { ...options, folders: PACKAGE_FOLDERS })
  } finally {
    await close()
  }
}
