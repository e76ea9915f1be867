// paygate.ts: the client, and the time that counts
import { parseTime, Paygate } from 'paygate-client'

export function setting(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`set ${name}`)
  return value
}

const apiKey = setting('PAYGATE_API_KEY')

export const paygate = new Paygate({
  baseUrl: setting('PAYGATE_URL'),
  apiKey,
  apiSecret: setting('PAYGATE_API_SECRET'),
})

/** A sandbox app has a clock of its own, which you move. */
export async function now(): Promise<Date> {
  return apiKey.startsWith('pk_test_') ? parseTime((await paygate.testClock.get()).now) : new Date()
}
