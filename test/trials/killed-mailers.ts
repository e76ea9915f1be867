import { once } from 'node:events'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { unconfirmedReminders } from '#mails/mail-lists.ts'
import { startSweep } from '../mails/start-sweep.ts'
import { partsOf, aScene, type Scene } from '../renewals/scene.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { seededRandom } from '../support/seeded-random.ts'

export interface KilledMailersOptions {
  /** Subscriptions whose mail is due. */
  readonly mails: number
  /** Sweeps that are killed with -9. */
  readonly kills: number
  readonly seed: number
}

/**
 * T06: sweeps are killed around SMTP DATA, each at another moment of another mail, until the last one runs to its end. Throws if a mail
 * arrived twice, if one never arrived without a kill during its answer, or if one is neither recorded nor shown to operators.
 */
export async function killedMailers({ mails, kills, seed }: KilledMailersOptions) {
  const random = seededRandom(seed)
  const scene = await aScene()
  try {
    for (let n = 1; n <= mails; n += 1) await scene.subscribe({ externalRef: `user-${n}` })
    // A sandbox app may not send so many mails in a day.
    await scene.ctx.db.query('UPDATE apps SET is_sandbox = 0')
    scene.ctx.clock.set('2026-03-29 10:00:00')
    let killed = 0
    for (let kill = 1; kill <= kills; kill += 1) {
      killed += await killedSweep(scene, 1 + Math.floor(random() * Math.max(1, mails / kills)), random() < 0.5)
      // By then the claims of dead sweeps that were not handed over have expired.
      scene.ctx.clock.advance('2m')
    }
    await sendDueReminders(scene.ctx)
    scene.ctx.clock.advance('5m')
    await sendDueReminders(scene.ctx)
    await requireCleanLedger(scene.ctx, 'after the kills')
    return await judge(scene, mails, killed)
  } finally {
    await scene.stop()
  }
}

/**
 * A sweep in a separate process, killed at its n-th mail: before the server's go-ahead, or after it received the whole mail. Returns 0
 * if it had fewer mails and ended by itself, otherwise 1.
 */
async function killedSweep(scene: Scene, atMail: number, isBeforeGoAhead: boolean): Promise<number> {
  const child = startSweep(scene, 'reminder')
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>
  let seen = 0
  const killAtMail = async (): Promise<void> => {
    seen += 1
    if (seen < atMail) return
    child.kill('SIGKILL')
    await ended
  }
  scene.inbox.beforeGoAhead = isBeforeGoAhead ? killAtMail : null
  scene.inbox.beforeAnswer = isBeforeGoAhead ? null : killAtMail
  const [code, signal] = await ended
  scene.inbox.beforeGoAhead = null
  scene.inbox.beforeAnswer = null
  if (signal === null && code !== 0) throw new Error(`a sweep ended with ${code}`)
  return signal === 'SIGKILL' ? 1 : 0
}

async function judge(scene: Scene, mails: number, kills: number) {
  const arrivals = new Map<string, number>()
  for (const mail of scene.inbox.mails) {
    const key = partsOf(mail).join('.')
    arrivals.set(key, (arrivals.get(key) ?? 0) + 1)
  }
  const twice = [...arrivals].filter(([, times]) => times > 1)
  if (twice.length > 0) throw new Error(`arrived twice: ${twice.map(([key]) => key).join(', ')}`)
  const rows: { id: string }[] = await scene.ctx.db.query(`SELECT id FROM reminders WHERE status = 'sent'`)
  const unconfirmed = await unconfirmedReminders.count(scene.ctx)
  if (rows.length + unconfirmed !== mails) {
    throw new Error(`${mails} mails, ${rows.length} recorded and ${unconfirmed} shown to operators`)
  }
  if (arrivals.size < rows.length) throw new Error(`${rows.length} are recorded as sent, ${arrivals.size} arrived`)
  return { mails, kills, recorded: rows.length, unconfirmed }
}
