import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { columnsOf } from '#cli/columns.ts'
import { formatFields, formatTable } from '#cli/table.ts'
import { wrap } from '#cli/wrap.ts'
import { boldOf, shownOn } from '../support/screen.ts'
import { expectFit, expectWholeTimestamps } from './run-cli.ts'
import { HEAD, ROWS } from './show-tables.ts'
import { onTerminal } from './terminal.ts'

/** The letters and digits, sorted, so that borders and line breaks make no difference. */
const lettersOf = (text: string) =>
  text
    .replace(/[^a-z0-9]/g, '')
    .split('')
    .sort()
    .join('')
const shownAs = (value: string | number | boolean | null) =>
  typeof value === 'boolean' ? (value ? 'yes' : 'no') : (value ?? '')

describe('tables for people', () => {
  it('break lines between words, and words only where they are longer than a line', () => {
    expect(wrap('the relay has settings and no secret', 12)).to.equal('the relay\nhas settings\nand no\nsecret')
    expect(wrap('abcdefghij kl', 4)).to.equal('abcd\nefgh\nij\nkl')
    expect(wrap('', 4)).to.equal('')
  })

  it('fit 80 columns and lose nothing, whatever they show', () => {
    const cell = fc.oneof(fc.stringMatching(/^[a-z0-9 ._-]{0,120}$/), fc.integer(), fc.boolean(), fc.constant(null))
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell, cell, cell, cell), { minLength: 1, maxLength: 4 }), (rows) => {
        const head = ['id', 'name', 'status', 'at', 'reason', 'note']
        const table = formatTable({ head, rows, none: '' })
        expectFit(table)
        // Where no table fits, each row is a block with the names of its fields.
        const heads = Array.from({ length: !table.startsWith('─') ? 1 : rows.length }, () => head)
        expect(lettersOf(table)).to.equal(lettersOf([...heads.flat(), ...rows.flat().map(shownAs)].join('')))
      }),
      { numRuns: 50 },
    )
    const long = 'x'.repeat(300)
    expect(formatFields({ value: long }).match(/x/g)).to.have.length(300)
  })

  it('count the columns that characters take: none is cut, and none stands beside its column', async () => {
    const names = ['王小明', 'Nguyễn Thị Bích', 'नमस्ते', '👩‍👩‍👧‍👦 Lan', '🇻🇳', '東京都'.repeat(20), `x${'😀'.repeat(50)}`]
    for (const width of [40, 60, 80]) {
      const table = formatTable({ head: ['name', 'note'], rows: names.map((name) => [name, 'the note of it']) }, width)
      const fields = names.map((name) => formatFields({ name, note: 'x' }, width)).join('\n')
      for (const shown of [table, fields]) {
        expect(shown).not.to.match(/[…\ufffd]/u)
        expect(Buffer.from(shown).toString(), 'no half of a character').to.equal(shown)
        expect(shown.replace(/\s|name|note/g, ''))
          .to.include(names[5])
          .and.to.include(names[6])
        for (const line of shown.split('\n')) expect(columnsOf(line), line).to.be.at.most(width)
      }
    }
    const short = formatTable({ head: ['name', 'note'], rows: names.slice(0, 2).map((name) => [name, 'a note']) })
    for (const { text } of (await shownOn(80, short.replaceAll('\n', '\r\n'))).slice(2, 4))
      expect(columnsOf(text.slice(0, text.indexOf('a note'))), text).to.equal(17)
  })

  it('break words only where lines broken between words do not fit', () => {
    const rows = [['2026-11-21 03:16:16', 'underpaid', 'x y '.repeat(20).trim(), 'the payer was told to send the rest']]
    const table = formatTable({ head: ['received (UTC)', 'flag', 'letters', 'note'], rows, none: '' })
    expectFit(table)
    for (const word of ['received', '(UTC)', '2026-11-21', 'underpaid', 'payer']) expect(table).to.include(word)
  })

  it('never break a timestamp: drop optional columns, else show a block for each row', () => {
    const rows = [['2026-11-21 03:16', 'the payer was told at 2026-11-21 03:20 UTC', 'ACB']]
    const table = { head: ['received (UTC)', 'note', 'bank'], rows, none: '', optional: ['bank'] }
    expect(formatTable(table, 46)).to.include('2026-11-21 03:16  the payer was told at   ACB\n')
    expect(formatTable(table, 42)).to.include('2026-11-21 03:20 UTC\nNo room for: bank.')
    expect(formatTable(table, 36)).to.match(/^received \(UTC\) {2}2026-11-21 03:16$/m)
    for (let width = 36; width <= 80; width += 1) expectWholeTimestamps(formatTable(table, width))
  })

  it('never break the id of an app from its mark', () => {
    expect(wrap('app [TEST] 21 and [LIVE] Reader 7', 10)).to.equal('app\n[TEST] 21\nand [LIVE]\nReader 7')
    const table = { head: ['app', 'note'], rows: [['[TEST] 21', 'short by the transfer fee']], none: '' }
    for (let width = 20; width <= 40; width += 1) expect(formatTable(table, width)).to.include('[TEST] 21')
  })

  it('break heads and codes after `_`, `.` and `-` rather than show blocks, but nothing that was not called a code', () => {
    const rows = [['user_of_the-shop', 'bank_transfer', 'subscription.updated']]
    const table = { head: ['external_ref', 'by', 'event'], rows, none: '', codes: ['by', 'event'] }
    const whole = 'external_ref      by             event\n'
    expect(formatTable(table, 55))
      .to.match(new RegExp(`^${whole}`))
      .and.to.include('  subscription.updated')
    expect(formatTable(table, 50)).to.match(
      /^external_ref {6}by {13}event\n─+\n.* {2}bank_transfer {2}subscription\.\n +updated$/,
    )
    expect(formatTable(table, 41)).to.match(/\nuser_of_the-shop {2}bank_ {5}subscription\.\n +transfer {2}updated$/)
    expect(formatTable(table, 40), 'a block').to.match(/^─+\nexternal_ref {2}user_of_the-shop\nby {12}bank_transfer\n/)
    const narrow = formatTable({ ...table, rows: [['user-1', 'card', 'webhook.test']] }, 25)
    expect(narrow, 'a head').to.match(/^external_ {2}by {4}event\nref\n/)
  })

  it('say UTC after the timestamp of a field, where no head does', () => {
    expect(formatFields({ at: '2026-11-21 03:16:16', note: 'at 2026-11-21 03:16' })).to.equal(
      'at    2026-11-21 03:16:16 UTC\nnote  at 2026-11-21 03:16',
    )
  })

  it('join several values with commas, and show none as a dash', () => {
    expect(formatFields({ cc_emails: ['a@x.example', 'b@x.example'], bcc_emails: [], url: null })).to.equal(
      'cc_emails   a@x.example, b@x.example\nbcc_emails  -\nurl         -',
    )
  })

  it('escape what would control the terminal', () => {
    const shown = formatFields({ name: 'An\u001b[2J\u0007\u202e' })
    expect(shown).to.include('An\\u001b[2J\\u0007\\u202e')
    expectFit(shown)
  })

  for (const columns of [60, 80, 120, 200]) {
    it(`on a colour terminal of ${columns} columns have one bold head and whole identifiers`, async () => {
      const program = [process.execPath, join(import.meta.dirname, 'show-tables.ts')]
      const { raw, code } = await onTerminal({}, [], [], { columns, program })
      expect(code, raw).to.equal(0)
      expect(raw).to.include('\u001b[1m')
      const lines = (await shownOn(columns, raw)).filter(({ text }) => text !== '')
      const shown = lines.map(({ text }) => text).join('\n')
      expect(shown).not.to.match(/\[?\d*m\b(?<=1m|22m)/)
      for (const word of [...HEAD, ...ROWS.flat().flatMap((cell) => String(cell).split(' '))])
        expect(shown).to.include(word)
      expect(shown).to.include('sk_0123456789abcdef0123456789abcdef')
      const isTable = lines[0]!.text.includes('external_ref') && lines[0]!.text.includes('reference')
      expect(isTable, shown).to.equal(columns >= 120)
      if (isTable) expect(boldOf(lines[0]!).replaceAll(' ', '')).to.equal(HEAD.join(''))
      else expect(lines.filter((line) => boldOf(line).startsWith('external_ref'))).to.have.length(ROWS.length)
    })
  }
})
