import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { qrSvg } from '#bank-accounts/qr-image.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { crc16, vietQrPayload, type VietQr } from '#bank-accounts/vietqr.ts'
import { decodeVietQr } from './decode-vietqr.ts'
import { scratchFolder } from '../support/scratch.ts'

const ACB = { bin: '970416', number: '257678859' }
const VIETIN = { bin: '970415', number: '0011001932418', amount: 2000 }

/** Codes published by NAPAS and by the authors of other programs. */
const PUBLISHED: readonly (readonly [string, VietQr, string])[] = [
  [
    'NAPAS: static',
    { bin: '970403', number: '0011012345678' },
    '00020101021138570010A00000072701270006970403011300110123456780208QRIBFTTA53037045802VN63049E6F',
  ],
  ['ACB: static', ACB, '00020101021138530010A0000007270123000697041601092576788590208QRIBFTTA53037045802VN6304AE9F'],
  [
    'ACB: 10 000 with a text',
    { ...ACB, amount: 10_000, purpose: 'Chuyen tien' },
    '00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA53037045405100005802VN62150811Chuyen tien630453E6',
  ],
  [
    'ACB: 1 000 with a text',
    { ...ACB, amount: 1000, purpose: 'Chuyen tien' },
    '00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA5303704540410005802VN62150811Chuyen tien6304BBB8',
  ],
  [
    'MB: an account number of 13 digits',
    { bin: '970422', number: '0023457923442', amount: 40_123, purpose: 'chuyen khoan' },
    '00020101021238570010A00000072701270006970422011300234579234420208QRIBFTTA53037045405401235802VN62160812chuyen khoan6304722F',
  ],
  [
    'VietinBank: a text of four words',
    { ...VIETIN, amount: 120_000, purpose: 'ung ho lu lut' },
    '00020101021238570010A00000072701270006970415011300110019324180208QRIBFTTA530370454061200005802VN62170813ung ho lu lut6304C15C',
  ],
  [
    'TPBank: static',
    { bin: '970423', number: '0099999999' },
    '00020101021138540010A00000072701240006970423011000999999990208QRIBFTTA53037045802VN6304CBB4',
  ],
  [
    'Vietcombank: 180 000',
    { bin: '970436', number: '1017595600', amount: 180_000, purpose: 'thanh toan don hang' },
    '00020101021238540010A00000072701240006970436011010175956000208QRIBFTTA530370454061800005802VN62230819thanh toan don hang630470FA',
  ],
  [
    'a checksum with a leading zero',
    { ...VIETIN, amount: 120_000, purpose: 'TEST5' },
    '00020101021238570010A00000072701270006970415011300110019324180208QRIBFTTA530370454061200005802VN62090805TEST563040FF5',
  ],
  [
    'a static code whose checksum has a leading zero',
    { bin: '970407', number: '19030413601018' },
    '00020101021138580010A000000727012800069704070114190304136010180208QRIBFTTA53037045802VN63040283',
  ],
]

describe('VietQR', () => {
  for (const [name, qr, payload] of PUBLISHED) {
    it(`writes the published code (${name}) byte for byte`, () => {
      expect(vietQrPayload(qr)).to.equal(payload)
      expect(decodeVietQr(payload)).to.deep.equal(qr)
    })
  }

  it('computes the checksum that CRC-16/CCITT-FALSE is known by', () => {
    expect(crc16('123456789')).to.equal('29B1')
  })

  it('is not mistaken for a code with a wrong checksum or a wrong inner length', () => {
    const wrongChecksum =
      '00020101021238530010A0000007270123000697041601092576788590208QRIBFTTA5303704540410005802VN62150811Chuyen tien6304BBB5'
    const wrongLength = '00020101021138570010A00000072701390006970422011301234567890200208QRIBFTTA53037045802VN6304A3CF'
    expect(() => decodeVietQr(wrongChecksum)).to.throw('wrong checksum')
    expect(() => decodeVietQr(wrongLength)).to.throw('field 02 is missing')
  })

  const REFUSED: Record<string, Partial<VietQr>> = {
    'a text of 26 characters': { purpose: 'A'.repeat(26) },
    'a text with accents': { purpose: 'chuyển tiền' },
    'an empty text': { purpose: '' },
    'a text with a blank at its end': { purpose: 'PG ' },
    'an amount of nothing': { amount: 0 },
    'a negative amount': { amount: -1 },
    'a fraction of a dong': { amount: 1.5 },
    'an amount beyond 13 digits': { amount: 1e13 },
    'an amount that is no number': { amount: Number.NaN },
    'a BIN of five digits': { bin: '97041' },
    'an account number of 20 digits': { number: '1'.repeat(20) },
    'an account number with a blank': { number: '12 34' },
    'no account number': { number: '' },
  }
  for (const [what, change] of Object.entries(REFUSED)) {
    it(`refuses ${what}`, () => {
      expect(() => vietQrPayload({ ...ACB, amount: 1000, ...change })).to.throw(RangeError)
    })
  }

  it('is read back by an independent reader from the image that payers see', async () => {
    const asked = { ...ACB, amount: 99_000, purpose: newTransferCode() }
    const read = readQrImage(await qrSvg(vietQrPayload(asked)))
    expect(decodeVietQr(read)).to.deep.equal(asked)
  })
})

/** What `zbarimg` reads in the SVG, painted as a picture of eight pixels a module. */
function readQrImage(svg: string): string {
  const file = join(scratchFolder('qr'), 'qr.pgm')
  writeFileSync(file, paint(svg, 8))
  return execFileSync('zbarimg', ['--quiet', '--raw', file], { encoding: 'utf8' }).trim()
}

/** The library draws each row of modules with strokes of height one: `M4 4.5h7m1 0h1…`. */
function paint(svg: string, scale: number): Buffer {
  const size = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)![1])
  const strokes = /stroke="#000000" d="([^"]+)"/.exec(svg)![1]!
  const width = size * scale
  const pixels = Buffer.alloc(width * width, 0xff)
  let x = 0
  let y = 0
  for (const [, command, first, second] of strokes.matchAll(/([Mmh])(-?[\d.]+)(?: (-?[\d.]+))?/g)) {
    const length = Number(first)
    if (command === 'h') fillModules(pixels, { x, y: Math.floor(y), length, scale, width })
    x = command === 'M' ? length : x + length
    y = command === 'M' ? Number(second) : y + Number(second ?? 0)
  }
  return Buffer.concat([Buffer.from(`P5\n${width} ${width}\n255\n`), pixels])
}

function fillModules(
  pixels: Buffer,
  row: { x: number; y: number; length: number; scale: number; width: number },
): void {
  for (let line = 0; line < row.scale; line += 1) {
    const start = (row.y * row.scale + line) * row.width + row.x * row.scale
    pixels.fill(0, start, start + row.length * row.scale)
  }
}
