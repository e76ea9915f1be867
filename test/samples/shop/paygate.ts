// paygate.ts: the client, and the time that counts
import { Paygate } from 'paygate-client'

export function setting(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`set ${name}`)
  return value
}

const apiKey = setting('API_KEY')

export const paygate = new Paygate({ baseUrl: setting('PAYGATE_URL'), apiKey, apiSecret: setting('API_SECRET') })

/** A sandbox app has a clock of its own, which you move. */
export async function now(): Promise<Date> {
  return apiKey.startsWith('pk_test_') ? parseTime((await paygate.testClock.get()).now) : new Date()
}

/** Times are in UTC: `2026-12-22 09:30:00`. */
export function parseTime(text: string): Date {
  return new Date(`${text.replace(' ', 'T')}Z`)
}

export function formatTime(time: Date): string {
  return time.toISOString().slice(0, 19).replace('T', ' ')
}
