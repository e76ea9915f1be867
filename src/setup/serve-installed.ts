import { copyInstalled, PACKAGE_FOLDERS, removeOthers, serve } from './program-copies.ts'

// The package's postinst runs this if no daemon serves yet: the service starts with the program that was installed.
serve(PACKAGE_FOLDERS, await copyInstalled(PACKAGE_FOLDERS))
removeOthers(PACKAGE_FOLDERS)
