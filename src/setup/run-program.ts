import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'

/** Where Debian has programs of its services, which an ordinary PATH may lack. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin', '/usr/bin', '/bin', '/usr/libexec']

export function hasProgram(name: string): boolean {
  const onPath = (childEnvironment({})['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return [...onPath, ...SYSTEM_FOLDERS].some((folder) => existsSync(join(folder, name)))
}

/** Runs a program to its end and returns what it printed. If it fails, throws an error with its last line of output. */
export async function runProgram(name: string, words: readonly string[], input = ''): Promise<string> {
  const environment = childEnvironment({ DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' })
  const PATH = [environment['PATH'] ?? '', ...SYSTEM_FOLDERS].join(delimiter)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = execFile(name, words, { env: { ...environment, PATH } }, (error, stdout, stderr) => {
    if (!error) resolve(stdout)
    else reject(new Error(`${name} ${words[0] ?? ''}: ${lastLine(`${stdout}\n${stderr}`) || error.message}`))
  })
  child.stdin?.on('error', () => undefined).end(input)
  return promise
}

/** Whether systemd runs the unit now. */
export async function isUnitActive(unit: string): Promise<boolean> {
  return (await runProgram('systemctl', ['show', '-P', 'ActiveState', unit])).trim() === 'active'
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
