import { copyInstalled, PACKAGE_FOLDERS, removeOthers, serveCopy } from './program-copies.ts'

// The package's postinst runs this if no daemon serves yet: the service starts with the program that was installed.
serveCopy(PACKAGE_FOLDERS, await copyInstalled(PACKAGE_FOLDERS))
removeOthers(PACKAGE_FOLDERS)
