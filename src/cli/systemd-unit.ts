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
export const UNIT_FILE = '/etc/systemd/system/billing-daemon.service'
/** The daily backup; it does nothing without a recipient. */
export const BACKUP_UNIT_FILE = '/etc/systemd/system/billing-backup.service'
export const BACKUP_TIMER_FILE = '/etc/systemd/system/billing-backup.timer'
export const CLI_FILE = '/usr/local/bin/billing-cli'

/** Secret settings: files with these names, never lines of the environment file. The first three are required. */
export const CREDENTIALS = [
  'BILLING_DATABASE_URL',
  'BILLING_ENCRYPTION_KEYS',
  'BILLING_METRICS_TOKEN',
  'BILLING_SMTP_URL',
  'BILLING_RELAY_SECRET',
] as const
const NEEDED: ReadonlySet<string> = new Set(CREDENTIALS.slice(0, 3))

/** The unit with real paths. An optional credential without a file is left out, since systemd would refuse to start. */
export function renderUnit({ root, prefix }: InstallPaths): string {
  const credentials = CREDENTIALS.map((name) => {
    const path = join(CREDENTIALS_FOLDER, name)
    const line = `LoadCredential=${name}:${path}`
    return NEEDED.has(name) || existsSync(join(prefix, path)) ? line : `#${line}`
  })
  return render('billing-daemon.service', { ROOT: root, ENVIRONMENT_FILE, CREDENTIALS: credentials.join('\n') })
}

export function renderBackupUnit({ root }: InstallPaths): string {
  return render('billing-backup.service', { ROOT: root, ENVIRONMENT_FILE, CLI_FILE })
}

export function renderBackupTimer(): string {
  return render('billing-backup.timer', {})
}

function render(name: string, values: Readonly<Record<string, string>>): string {
  return readFileSync(join(import.meta.dirname, '../../templates/systemd', name), 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('# Written by'))
    .join('\n')
    .replace(/@([A-Z_]+)@/g, (whole, key: string) => values[key] ?? whole)
}

/** billing-cli with the service's own settings, for root. It works while the daemon is down, too. */
export function renderCli({ root }: InstallPaths): string {
  return `#!/bin/sh
# Written by billing-cli service install: the command line with the settings of the service.
set -eu
if [ ! -r ${CREDENTIALS_FOLDER} ]; then
  echo 'error: the service belongs to root: use sudo billing-cli' >&2
  exit 1
fi
# Lines of ${ENVIRONMENT_FILE} are read as systemd reads plain ones: NAME=value, value as it is.
while IFS= read -r line; do
  case $line in
    [A-Z]*=*) export "$line" ;;
  esac
done < ${ENVIRONMENT_FILE}
BILLING_ENV=\${BILLING_ENV:-production} BILLING_HOME=\${BILLING_HOME:-/var/lib/private/paygate} CREDENTIALS_DIRECTORY=${CREDENTIALS_FOLDER} \\
  exec ${root}/bin/billing-cli "$@"
`
}

/** The settings that are not secret, to be filled in. */
export const SAMPLE_ENVIRONMENT = `# Settings of Paygate that are no secrets: README, Configuration. Secrets are files in ${CREDENTIALS_FOLDER}.
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
