import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  CLI_FILE,
  ENVIRONMENT_FILE,
  PACKAGE_CLI_FILE,
  PACKAGE_ROOT,
  SERVED_ROOT,
  serviceValues,
  type InstallPaths,
} from './systemd-unit.ts'

const TEMPLATES = join(import.meta.dirname, '../../templates/systemd')

/** The unit of the service. */
export const DAEMON_UNIT = 'billing-daemon.service'

export interface SystemdUnit {
  readonly name: string
  readonly content: string
}

/** The units of an installation from a folder: the daemon, and the daily backup, which does nothing without a recipient. */
export function renderUnits({ root, prefix }: InstallPaths): SystemdUnit[] {
  return render({ ROOT: root, CLI_FILE, ...serviceValues(prefix) })
}

/** dpkg replaces files under a running daemon, which loads some of them later: the daemon sees a copy in their place. */
const PROGRAM = `# The version that billing-cli upgrade chose, whatever was installed since.\nBindReadOnlyPaths=${SERVED_ROOT}:${PACKAGE_ROOT}`

/** The units of the package. They name no credentials; `setup` adds those in a separate file. */
export function packageUnits(): SystemdUnit[] {
  const units = render({
    ROOT: PACKAGE_ROOT,
    CLI_FILE: PACKAGE_CLI_FILE,
    CREDENTIALS: '',
    SERVER: `DynamicUser=yes\nKillMode=mixed\n${PROGRAM}`,
  })
  const docs = (content: string) => content.replaceAll(`${PACKAGE_ROOT}/docs/`, '/usr/share/doc/paygate/docs/')
  return units.map(({ name, content }) => ({ name, content: docs(content) }))
}

function render(values: Readonly<Record<string, string>>): SystemdUnit[] {
  const all: Readonly<Record<string, string>> = { ...values, ENVIRONMENT_FILE }
  return readdirSync(TEMPLATES).map((name) => ({
    name,
    content: readFileSync(join(TEMPLATES, name), 'utf8')
      .replace(/^# Written by.*\n/, '')
      .replace(/@([A-Z_]+)@/g, (whole, key: string) => all[key] ?? whole),
  }))
}
