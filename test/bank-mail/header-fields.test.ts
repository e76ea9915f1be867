import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readHeader, valuesOf } from '#bank-mail/header-fields.ts'

const header = (text: string) => readHeader(Buffer.from(text, 'latin1'))

describe('the header of a mail', () => {
  it('is read from top to bottom, unfolded, down to the first empty line', () => {
    const { fields, isWellFormed } = header('A: 1\r\nb: 2\r\n\t3\r\nA: 4\r\n\r\nC: body\r\n')
    expect(isWellFormed).to.equal(true)
    expect(fields).to.deep.equal([
      { name: 'a', value: ' 1' },
      { name: 'b', value: ' 2\t3' },
      { name: 'a', value: ' 4' },
    ])
    expect(valuesOf(fields, 'a')).to.deep.equal([' 1', ' 4'])
  })

  it('is read the same with the line ends that a pipe gives', () => {
    expect(header('A: 1\nB: 2\n 3\n\nC: body')).to.deep.equal(header('A: 1\r\nB: 2\r\n 3\r\n\r\nC: body'))
  })

  it('may be preceded by the line that a mail server writes for a pipe', () => {
    expect(header('From support@timo.vn Fri Nov 13 06:37:10 2026\nA: 1\n\n').isWellFormed).to.equal(true)
  })

  const MALFORMED: Record<string, string> = {
    'a line without a colon': 'A: 1\r\nnothing\r\n\r\n',
    'a blank before the colon': 'From : support@timo.vn\r\n\r\n',
    'a folded name': 'From\r\n : support@timo.vn\r\n\r\n',
    'a first line that continues nothing': ' A: 1\r\n\r\n',
    'a NUL': 'A: 1\0\r\n\r\n',
    'a carriage return inside a line': 'A: 1\rFrom: support@timo.vn\r\n\r\n',
    'a name with a letter that is not ASCII': 'Fr\xf6m: x\r\n\r\n',
    nothing: '',
    'more fields than any server writes': 'A: 1\r\n'.repeat(1001),
    'more lines below it than any mail has': `A: 1\r\n\r\n${'x\r\n'.repeat(10_000)}`,
  }
  for (const [what, text] of Object.entries(MALFORMED)) {
    it(`is not well formed with ${what}`, () => {
      expect(header(text).isWellFormed).to.equal(false)
    })
  }
})
