import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'
import { formatTimestamp } from '#shared/time.ts'
import type { Scene } from '../renewals/scene.ts'
import { testEnvironment } from '../support/context.ts'

/** What a process needs to send the mails of a scene. */
export function mailEnvironment(
  { ctx }: Scene,
  settings: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const { smtpUrl, mailFrom } = ctx.config
  const mail = { BILLING_SMTP_URL: smtpUrl ?? '', BILLING_MAIL_FROM: mailFrom ?? '', BILLING_LOG_LEVEL: 'silent' }
  return childEnvironment(testEnvironment({ ...mail, ...settings }))
}

/** A daemon's sweep at the time of the scene, in a process of its own that a test can kill. */
export function startSweep(
  scene: Scene,
  noun: 'reminder' | 'receipt',
  settings?: Readonly<Record<string, string>>,
): ChildProcess {
  // As for `bin/billing-cli`: it loads hundreds of files and ends.
  const args = [
    '--min-semi-space-size=16',
    join(import.meta.dirname, 'sweep-once.ts'),
    formatTimestamp(scene.ctx.clock.now()),
    noun,
  ]
  return spawn(process.execPath, args, {
    env: mailEnvironment(scene, settings),
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}
