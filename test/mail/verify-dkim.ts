import { execFileSync } from 'node:child_process'

/** Verifies with the records that it is given instead of those in DNS. */
const PROGRAM = `
import sys, json, dkim
given = json.load(sys.stdin)
def record(name, timeout=5):
    text = given['records'].get(name.decode().rstrip('.').lower())
    return None if text is None else text.encode()
try:
    print(json.dumps(bool(dkim.verify(given['raw'].encode(), dnsfunc=record))))
except dkim.DKIMException:
    print('false')
`

/** Whether python3-dkim verifies the mail's signature by these TXT records. */
export function verifyDkim(raw: string, records: Readonly<Record<string, string>>): boolean {
  const input = JSON.stringify({ raw, records })
  return execFileSync('/usr/bin/python3', ['-c', PROGRAM], { input, encoding: 'utf8' }).trim() === 'true'
}
