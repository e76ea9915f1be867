import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where an installed service has its files. */
export interface InstallPaths {
  /** This project's folder. */
  readonly root: string
  /** Prepended to every path that is written; empty except in trials. */
  readonly prefix: string
}

export const ENVIRONMENT_FILE = '/etc/paygate/billing.env'
export const CREDENTIALS_FOLDER = '/etc/paygate/credentials'
export const UNIT_FOLDER = '/etc/systemd/system'
/** Where the package puts the project; the unit and billing-cli come with it, too. */
export const PACKAGE_ROOT = '/usr/lib/paygate'
export const PACKAGE_CLI_FILE = '/usr/bin/billing-cli'
/** Copies of the package's program, which share its files (hard links), so that dpkg may replace them under a running daemon (R480). */
export const VERSIONS_FOLDER = '/usr/lib/paygate-versions'
/** A link to the copy that the service runs. It leads to the program that was installed last only after `billing-cli upgrade`. */
export const SERVED_ROOT = `${VERSIONS_FOLDER}/current`
/** Whether a program is of the package, rather than of a clone. */
export const isOfPackage = (root: string): boolean => root === PACKAGE_ROOT || root.startsWith(`${VERSIONS_FOLDER}/`)
/** Adds the credentials to the package's unit, which names none. */
export const CREDENTIALS_UNIT_FILE = '/etc/systemd/system/billing-daemon.service.d/credentials.conf'
export const CLI_FILE = '/usr/local/bin/billing-cli'

/** Secret settings: files with these names, never lines of the environment file. The first three are required. */
export const CREDENTIALS = [
  'BILLING_DATABASE_URL',
  'BILLING_ENCRYPTION_KEYS',
  'BILLING_METRICS_TOKEN',
  'BILLING_SMTP_URL',
  'BILLING_DKIM_KEY',
  'BILLING_RELAY_SECRET',
  'BILLING_ALERT_WEBHOOK_SECRET',
] as const
const NEEDED: ReadonlySet<string> = new Set(CREDENTIALS.slice(0, 3))

/**
 * For each secret setting, the line that passes it to the daemon. Omits an optional one without a file, because systemd would refuse to
 * start.
 */
function credentialLines(prefix: string): string[] {
  return CREDENTIALS.map((name) => {
    const path = join(CREDENTIALS_FOLDER, name)
    const line = `LoadCredential=${name}:${path}`
    const isNeeded = NEEDED.has(name) && !(name === 'BILLING_DATABASE_URL' && hasOwnServer(prefix))
    return isNeeded || existsSync(join(prefix, path)) ? line : `#${line}`
  })
}

/** Whether the service runs Paygate's own database server, which needs no address. */
function hasOwnServer(prefix: string): boolean {
  const file = join(prefix, ENVIRONMENT_FILE)
  return existsSync(file) && /^BILLING_ALLOW_EMBEDDED_DB=1$/m.test(readFileSync(file, 'utf8'))
}

/** The user that owns Paygate's own database server, so that root can start it while the daemon is down. */
export const SERVICE_USER = 'paygate'

/**
 * What the database requires of the unit. Paygate's own server has a permanent user. It ends by itself after its last client, so systemd
 * must not kill it. It is started by setpriv, which sets its capabilities even if it has none.
 */
function serverLines(prefix: string): string[] {
  if (!hasOwnServer(prefix)) return ['DynamicUser=yes', 'KillMode=mixed']
  return ['DynamicUser=no', `User=${SERVICE_USER}`, 'KillMode=process', 'SystemCallFilter=capset']
}

/** The values of `@CREDENTIALS@` and `@SERVER@` in the unit. */
export function serviceValues(prefix: string): { readonly CREDENTIALS: string; readonly SERVER: string } {
  return { CREDENTIALS: credentialLines(prefix).join('\n'), SERVER: serverLines(prefix).join('\n') }
}

/** The settings that the package's own unit lacks. */
export function renderCredentials(prefix: string): string {
  const { CREDENTIALS: secrets, SERVER } = serviceValues(prefix)
  return `# Written by billing-cli setup.\n[Service]\n${secrets}\n${SERVER}\n`
}

/**
 * Commands run the version that serves, except `migrate` and `upgrade`, which run the installed one. The first word that is not an option
 * decides.
 */
const CHOOSE_VERSION = `root=$(cd -P ${SERVED_ROOT} && pwd)
for word; do
  case $word in
    migrate | upgrade) root=${PACKAGE_ROOT} ;;
    -*) continue ;;
  esac
  break
done
`

/** billing-cli with the service's own settings, for root. It works while the daemon is down, too. */
export function renderCli({ root }: InstallPaths): string {
  const isPackage = root === PACKAGE_ROOT
  return `#!/bin/sh
# Written by billing-cli service install: the command line with the settings of the service.
set -eu
if [ ! -r ${CREDENTIALS_FOLDER} ]; then
  echo 'error: the service belongs to root: use sudo billing-cli' >&2
  exit 1
fi
# Lines of ${ENVIRONMENT_FILE} are read as systemd does: NAME=value or NAME="value", where a backslash (which read takes away)
# protects a character. Before setup there are none.
if [ -r ${ENVIRONMENT_FILE} ]; then
  while read line; do
    case $line in [A-Z]*=*) ;; *) continue ;; esac
    case \${line#*=} in
      \\"*\\" | \\'*\\') line=\${line%?} && export "\${line%%=*}=\${line#*=?}" ;;
      *) export "$line" ;;
    esac
  done < ${ENVIRONMENT_FILE}
fi
${isPackage ? `${CHOOSE_VERSION}NODE_COMPILE_CACHE=/var/cache/paygate-cli ` : ''}BILLING_ENV=\${BILLING_ENV:-production} BILLING_HOME=\${BILLING_HOME:-/var/lib/private/paygate} CREDENTIALS_DIRECTORY=${CREDENTIALS_FOLDER} \\
  exec ${isPackage ? '"$root"' : root}/bin/billing-cli "$@"
`
}

/** The settings that are not secret, to be filled in. */
export const SAMPLE_ENVIRONMENT = `# Settings of Paygate that are not secret: README, Configuration. Secrets are files in ${CREDENTIALS_FOLDER}.
BILLING_BASE_URL=https://pay.example.com
BILLING_HOST=127.0.0.1
BILLING_PORT=8080
# The reverse proxy in front:
BILLING_TRUST_PROXY=1
#BILLING_MAIL_FROM=Billing <billing@example.com>
# A backup each day, encrypted to this public key of age; with its private key here, each is verified, too:
#BILLING_BACKUP_RECIPIENT=age1…
#BILLING_BACKUP_IDENTITY=/etc/paygate/backup-identity
#BILLING_BACKUP_KEEP=14d
`

/** Whether the unit hides this folder from the daemon. */
export function isHidden(root: string): boolean {
  return /^\/(home|root|run\/user|tmp|var\/tmp)\//.test(`${root}/`)
}

/** Says that the unit hides this folder from the daemon, and what to do. */
export function hiddenMessage(root: string): string {
  return `the service cannot see ${root}: move the project to a folder such as /opt/paygate, and run this again`
}
