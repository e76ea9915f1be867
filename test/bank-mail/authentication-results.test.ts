import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { parseAuthenticationResults } from '#bank-mail/authentication-results.ts'
import { processorMs } from '../support/processor-time.ts'

/** Method, result and properties of each result. */
type Plain = [method: string, result: string, properties: Record<string, string>][]

function read(value: string): { id: string; results: Plain } | null {
  const parsed = parseAuthenticationResults(value)
  return (
    parsed && {
      id: parsed.authservId,
      results: parsed.results.map(({ method, result, properties }) => [method, result, Object.fromEntries(properties)]),
    }
  )
}

const PASS: Plain = [['dkim', 'pass', { 'header.d': 'timo.vn' }]]

describe('Authentication-Results', () => {
  const BY_THE_GRAMMAR: Record<string, [string, Plain]> = {
    'a pass': [' mx.x; dkim=pass header.d=timo.vn', PASS],
    'blanks wherever they may stand': [' mx.x ;\tdkim = pass  header . d = timo.vn ', PASS],
    'comments wherever they may stand': [
      ' (a) mx.x (b) ; (c) dkim (d) = (e) pass (f) header (g) . (h) d (i) = (j) timo.vn (k)',
      PASS,
    ],
    'nested comments and escapes in them': [' mx.x (a (b (c) \\) \\( d) e); dkim=pass header.d=timo.vn', PASS],
    'letters of either case': [' MX.X; DKIM=PASS HEADER.D=timo.vn', PASS],
    'versions that are known': [' mx.x 1; dkim/1=pass header.d=timo.vn', PASS],
    'a reason': [' mx.x; dkim=pass reason="very good; dkim=fail" header.d=timo.vn', PASS],
    nothing: [' mx.x; none', []],
    'an unsigned mail': [' mx.x; dkim=none', [['dkim', 'none', {}]]],
    'base64 without quotes, as OpenDKIM writes it': [
      ' mx.x; dkim=pass header.b=RgD2+Zt5/',
      [['dkim', 'pass', { 'header.b': 'RgD2+Zt5/' }]],
    ],
    'an identity without a local part': [
      ' mx.x; dkim=pass header.i=@timo.vn',
      [['dkim', 'pass', { 'header.i': '@timo.vn' }]],
    ],
    'what Exchange Online did about a mail': [
      ' mx.x; dmarc=pass (p=none) action=none header.from=timo.vn; dkim=pass header.d=timo.vn',
      [['dmarc', 'pass', { 'header.from': 'timo.vn' }], ...PASS],
    ],
    'a quoted value': [
      ' mx.x; arc=pass smtp.remote-ip="2607:f8b0::1"',
      [['arc', 'pass', { 'smtp.remote-ip': '2607:f8b0::1' }]],
    ],
    'a quoted local part': [
      ' mx.x; spf=pass smtp.mailfrom="a \\"b"@timo.vn',
      [['spf', 'pass', { 'smtp.mailfrom': 'a "b@timo.vn' }]],
    ],
  }
  for (const [what, [value, results]] of Object.entries(BY_THE_GRAMMAR)) {
    it(`says ${what}`, () => {
      expect(read(value)).to.deep.equal({ id: 'mx.x', results })
    })
  }

  it('of Gmail, Cloudflare, rspamd, OpenDKIM and OpenARC is read', () => {
    const seen = {
      gmail:
        ' mx.google.com;       dkim=pass header.i=@timo.vn header.s=mail header.b=3E4jG9yX;       spf=pass (google.com: domain of support@timo.vn designates 18.140.167.8 as permitted sender) smtp.mailfrom=support@timo.vn;       dmarc=pass (p=QUARANTINE sp=QUARANTINE dis=NONE) header.from=timo.vn',
      forwarded:
        ' mx.google.com; dkim=pass header.i=@guest.booking.com header.s=bk header.b=IPyOYxey; arc=pass (i=2 spf=pass spfdomain=guest.booking.com dkim=pass dkdomain=guest.booking.com dmarc=pass fromdomain=guest.booking.com); spf=pass (google.com: domain of a.b+caf_=c=googlemail.com@gmail.com designates 209.85.220.41 as permitted sender) smtp.mailfrom="a.b+caf_=c=googlemail.com@gmail.com"; dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=guest.booking.com',
      cloudflare:
        ' mx.cloudflare.net; dkim=pass header.d=gmail.com header.s=20251104 header.b=abc; dmarc=pass header.from=gmail.com policy.dmarc=none; spf=none (mx.cloudflare.net: no SPF records found for postmaster@x) smtp.helo=x; spf=pass (mx.cloudflare.net: domain of a@gmail.com designates 1.2.3.4 as permitted sender) smtp.mailfrom=a@gmail.com; arc=pass smtp.remote-ip="1.2.3.4"',
      rspamd:
        ' lists.linaro.org; dkim=pass header.d=gmail.com header.s=20251104 header.b=ftSMCzSy; arc=pass ("google.com:s=arc-20240605:i=1"); spf=pass (lists.linaro.org: domain of a@gmail.com designates 209.85.210.48 as permitted sender) smtp.mailfrom=a@gmail.com; dmarc=pass (policy=none) header.from=gmail.com',
      opendkim:
        ' lists.ozlabs.org;\tdkim=pass (2048-bit key; unprotected) header.d=intel.com header.i=@intel.com header.a=rsa-sha256 header.s=Intel header.b=RgD2Zt5/;\tdkim-atps=neutral',
      openarc: ' lists.ozlabs.org; arc=pass smtp.remote-ip="2607:f8b0:4864:20::b134" arc.chain=google.com',
    }
    for (const [server, value] of Object.entries(seen)) expect(read(value), server).not.to.equal(null)
    expect(read(seen.gmail)?.results.map(([method]) => method)).to.deep.equal(['dkim', 'spf', 'dmarc'])
  })

  const AGAINST_THE_GRAMMAR: Record<string, string> = {
    'no result': ' mx.x',
    'an empty result': ' mx.x;',
    'a semicolon at the end': ' mx.x; dkim=pass header.d=timo.vn;',
    'nobody who says it': ' ; dkim=pass header.d=timo.vn',
    'a result in the place of who says it': ' dkim=pass header.d=timo.vn',
    'no semicolon behind who says it': ' mx.x dkim=pass header.d=timo.vn',
    'a quoted name of who says it': ' "mx.x"; dkim=pass header.d=timo.vn',
    'a blank that does not break, in Latin-1': ' mx.x\xa0; dkim=pass header.d=timo.vn',
    'a blank that does not break, in UTF-8': ' mx.x\xc2\xa0; dkim=pass header.d=timo.vn',
    'a version that is not known': ' mx.x 2; dkim=pass header.d=timo.vn',
    'a version of the method that is not known': ' mx.x; dkim/2=pass header.d=timo.vn',
    'a comment that does not end': ' mx.x; dkim=pass header.d=timo.vn (',
    'a comment that ends twice': ' mx.x; dkim=fail (a) ) dkim=pass header.d=timo.vn',
    'a parenthesis inside a domain': ' mx.x; dkim=pass header.d=timo.vn(.attack.example',
    'a comment glued to a domain': ' mx.x; dkim=pass header.d=timo.vn(.attack.example)',
    'a quote that does not end': ' mx.x; dkim=fail reason="bad; dkim=pass header.d=timo.vn',
    'words behind a quote': ' mx.x; dkim=fail reason="bad"dkim=pass header.d=timo.vn',
    'a property said twice': ' mx.x; dkim=pass header.d=evil.example header.d=timo.vn',
    'an action of another method': ' mx.x; dkim=pass action=none header.d=timo.vn',
    'an action that is no word': ' mx.x; dmarc=pass action="none; dkim=pass"; dkim=fail header.d=timo.vn',
    'a reason behind a property': ' mx.x; dkim=pass header.d=timo.vn reason=x',
    'none beside a result': ' mx.x; dkim=pass header.d=timo.vn; none',
    'a NUL': ' mx.x; dkim=pass header.d=timo.vn\0.evil.example',
    'a NUL in a comment': ' mx.x; dkim=pass (\0) header.d=timo.vn',
    'an escape that nothing follows': ' mx.x; dkim=pass (\\',
    'a property without a value': ' mx.x; dkim=pass header.d=',
    'a comma': ' mx.x; dkim=pass header.d=timo.vn, spf=pass',
  }
  for (const [what, value] of Object.entries(AGAINST_THE_GRAMMAR)) {
    it(`says nothing with ${what}`, () => {
      expect(read(value)).to.equal(null)
    })
  }

  const HIDDEN: Record<string, string> = {
    'a comment': ' mx.x; dkim=fail (dkim=pass header.d=timo.vn) header.d=timo.vn',
    'a nested comment': ' mx.x; dkim=fail (a (b); dkim=pass header.d=timo.vn; (c)) header.d=timo.vn',
    'a reason': ' mx.x; dkim=fail reason="a; dkim=pass header.d=timo.vn" header.d=timo.vn',
    'a reason behind an escaped quote': ' mx.x; dkim=fail reason="a\\"; dkim=pass header.d=timo.vn" header.d=timo.vn',
    'a quoted local part':
      ' mx.x; dkim=fail header.d=timo.vn; spf=pass smtp.mailfrom="; dkim=pass header.d=timo.vn "@evil.example',
    'a comment before who says it': ' (mx.y; dkim=pass header.d=timo.vn) mx.x; dkim=fail header.d=timo.vn',
  }
  for (const [where, value] of Object.entries(HIDDEN)) {
    it(`does not pass by words in ${where}`, () => {
      const passed = read(value)?.results.filter(([method, result]) => method === 'dkim' && result === 'pass')
      expect(passed).to.deep.equal([])
    })
  }

  const INTACT: Record<string, boolean> = {
    ' mx.x; spf=pass (mx: domain of a@b.example designates 1.2.3.4 as permitted sender) smtp.mailfrom=a@b.example': true,
    ' mx.x; spf=pass (mx: domain of "a b"@b.example designates) smtp.mailfrom=b.example': true,
    ' mx.x; arc=pass ("google.com:s=arc-20240605:i=1")': true,
    ' mx.x; spf=pass smtp.mailfrom="a.b+caf_=c=d.example@e.example"': true,
    ' mx.x; dkim=fail reason="no key; (none)" header.d=timo.vn': true,
    ' mx.x; spf=pass (mx: domain of "x); arc=pass (y"@b.example designates)': false,
    ' mx.x; spf=pass (mx: domain of "x\\"); arc=pass (\\"y"@b.example designates)': false,
    ' mx.x; spf=pass (mx: (domain of "x)); arc=pass (y"@b.example designates)': false,
    ' mx.x; spf=pass smtp.mailfrom="x; arc=pass"@b.example': false,
    ' mx.x; spf=pass smtp.mailfrom="x)(y"@b.example': false,
    ' mx.x; spf=pass smtp.mailfrom="x\\\\y"@b.example': false,
  }
  for (const [value, isIntact] of Object.entries(INTACT)) {
    it(`${isIntact ? 'is' : 'is not'} intact:${value}`, () => {
      expect(parseAuthenticationResults(value)?.isIntact).to.equal(isIntact)
    })
  }

  it('says to us what it says to an independent reader', () => {
    // The other reader takes any word that begins so for the word itself.
    const values = fc
      .sample(anyField, { numRuns: 3000, seed: 20261113 })
      .filter((text) => !/(reason|none)[\w-]/.test(text))
    const others = readByAuthres(values)
    let [together, alone] = [0, 0]
    for (const [index, value] of values.entries()) {
      const [mine, other] = [read(value), others[index] ?? null]
      // Who else says something does not matter: it is not believed.
      if (mine?.id !== 'mx.x') continue
      if (other) expect(comparable(mine, value), value).to.deep.equal(comparable(other, value))
      if (other) together += 1
      else alone += 1
    }
    expect(together).to.be.above(300)
    // It refuses empty quoted strings and some escapes that the grammar allows.
    expect(alone).to.be.below(together / 20)
  })

  it('is read in time proportional to its length', () => {
    const long = [
      ` mx.x; dkim=pass ${'('.repeat(100_000)}${')'.repeat(100_000)} header.d=timo.vn`,
      ` mx.x${'; dkim=pass header.d=timo.vn'.repeat(7000)}`,
      ` mx.x; dkim=pass reason="${'\\"'.repeat(90_000)}"`,
      ` ${'a-'.repeat(90_000)}; none`,
    ]
    const before = processorMs()
    for (const value of long) read(value)
    expect(processorMs() - before).to.be.below(2000)
  })
})

const blank = fc.constantFrom('', '', ' ', '  ', '\t', '(c)', ' (a (b) c) ', '(', ')', ' (\\) ; dkim=pass) ')
const word = fc.constantFrom(
  'dkim',
  'spf',
  'arc',
  'pass',
  'fail',
  'none',
  'header',
  'd',
  'i',
  'smtp',
  'mailfrom',
  'timo.vn',
  '@timo.vn',
  '1',
  '2',
  'reason',
  'mx.x',
  'a-b',
)
const mark = fc.constantFrom(';', '=', '.', '/', '"', '"x y"', '"x; y=z"', '\\', ',')
const piece = fc.oneof({ weight: 3, arbitrary: blank }, { weight: 3, arbitrary: word }, { weight: 2, arbitrary: mark })
const property = fc
  .tuple(
    fc.constantFrom('header.d', 'header.i', 'smtp.mailfrom', 'header.s'),
    fc.constantFrom('timo.vn', '@timo.vn', 'a@b.example', '"q r"', 'x'),
  )
  .map(([name, value]) => `${name}=${value}`)
const result = fc
  .tuple(
    fc.constantFrom('dkim=pass', 'dkim=fail', 'spf=pass', 'arc=none', 'dkim/1=pass', 'dmarc = pass'),
    fc.constantFrom('', ' (ok)', ' reason="a; b"', ' reason=x'),
    fc.uniqueArray(property, { maxLength: 3, selector: (text) => text.split('=')[0] }),
  )
  .map(([method, remark, properties]) => `${method}${remark}${properties.map((text) => ` ${text}`).join('')}`)
const valid = fc
  .tuple(fc.constantFrom('mx.x', 'MX.X', 'mx.x 1', 'mx.x (c)'), fc.array(result, { minLength: 1, maxLength: 3 }))
  .map(([id, results]) => ` ${id}; ${results.join('; ')}`)
/** A valid field, and one with something put in or taken out anywhere. */
const mutated = fc
  .tuple(valid, fc.nat(200), fc.nat(6), fc.array(piece, { maxLength: 3 }))
  .map(([field, at, length, pieces]) => field.slice(0, at) + pieces.join('') + field.slice(at + length))
const anyField = fc.oneof(
  valid,
  mutated,
  mutated,
  fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join('')),
)

/** Without the quoted values, of which the other reader loses some, and without property types that it does not know. */
function comparable({ id, results }: { id: string; results: Plain }, field: string): { id: string; results: Plain } {
  const isPlain = ([name, value]: [string, string]): boolean =>
    /^(header|smtp|body|policy)\./.test(name) && /^[\w.@-]+$/.test(value) && !/["\\]/.test(field)
  return {
    id,
    results: results.map(([method, result, properties]) => [
      method,
      result,
      Object.fromEntries(Object.entries(properties).filter(isPlain)),
    ]),
  }
}

/** What python3-authres reads, in the same shape; null if it refuses. */
function readByAuthres(values: readonly string[]): ({ id: string; results: Plain } | null)[] {
  const program = `
import sys, json, authres
def unquote(value):
    return value.replace('"', '')
for line in sys.stdin:
    try:
        field = authres.AuthenticationResultsHeader.parse('Authentication-Results: ' + json.loads(line))
        results = [[r.method.lower(), r.result.lower(), {('%s.%s' % (p.type, p.name)).lower(): unquote(p.value) for p in r.properties}] for r in field.results]
        print(json.dumps({'id': field.authserv_id.lower(), 'results': results}))
    except Exception:
        print('null')
`
  const input = values.map((value) => JSON.stringify(value)).join('\n')
  const answer = execFileSync('/usr/bin/python3', ['-c', program], { input, encoding: 'utf8', maxBuffer: 1 << 26 })
  return answer
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; results: Plain } | null)
}
