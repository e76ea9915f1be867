export type Environment = Readonly<Record<string, string | undefined>>
/** The environment of child processes and worker threads, with some variables set. */
export function childEnvironment(overrides: Record<string, string>): Record<string, string> {
  const inherited = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { ...Object.fromEntries(inherited), ...overrides }
}

/** A service manager that this process reports to. `watchdogMs`: the longest pause between two pings that it accepts; null without a watchdog. */
export interface ServiceManager {
  readonly watchdogMs: number | null
}

/** The systemd that started this process as a service of type notify; null if none did. */
export function serviceManager(
  environment: Environment = process.env,
  pid: number = process.pid,
): ServiceManager | null {
  if (!environment['NOTIFY_SOCKET']) return null
  const { WATCHDOG_PID: watchedPid, WATCHDOG_USEC: microseconds = '' } = environment
  // The watchdog may belong to another process.
  const isOurs = watchedPid === undefined || watchedPid === String(pid)
  return { watchdogMs: isOurs && /^[1-9]\d*$/.test(microseconds) ? Number(microseconds) / 1000 : null }
}

/** The form of account names; sudo sets nothing else. */
const ACCOUNT_NAME = /^[\p{L}\p{N}_.@+\\$-]{1,128}$/u

/**
 * Who runs a command, for the audit log: the login name or, under sudo, the name of its caller, marked as such. A process that is not
 * root may have set SUDO_USER itself, so only root's is used (R263).
 */
export function operatorName(
  loginName: string,
  environment: Environment = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  const { SUDO_USER: caller = '' } = environment
  return uid === 0 && ACCOUNT_NAME.test(caller) ? `${caller} (sudo)` : loginName
}

/** The command line that an operator's ssh asked for; null where it asked for a session. */
export function sshCommand(): string | null {
  return process.env['SSH_ORIGINAL_COMMAND'] || null
}

/** Whether the terminal can do nothing but print (`TERM=dumb`, or no `TERM` at all). */
export function isDumbTerminal(): boolean {
  return (process.env['TERM'] || 'dumb') === 'dumb'
}

/** A secret that a command reads from its environment, so that it is never an argument. */
export function cliSecret(variable: string): string | undefined {
  return process.env[variable]
}

/** The program that opens a page in a browser; null if the session has no desktop. */
export function desktopOpener(
  environment: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): 'open' | 'xdg-open' | null {
  if (environment['SSH_CONNECTION']) return null
  if (platform === 'darwin') return 'open'
  return environment['DISPLAY'] || environment['WAYLAND_DISPLAY'] ? 'xdg-open' : null
}
