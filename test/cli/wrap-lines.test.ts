import { expect } from 'chai'
import { describe, it } from 'mocha'
import { wrapCommand, wrapLines } from '#cli/wrap-lines.ts'

describe('text that is wider than the terminal', () => {
  it('is broken between words, each of its lines by itself, with its indentation', () => {
    expect(wrapLines('error: the database is gone\n  is the server up?', 16)).to.equal(
      'error: the\ndatabase is gone\n  is the server\n  up?',
    )
  })

  it('keeps a word whole that is longer than a line, such as an address', () => {
    const address = 'https://pay.example.com/renew/0123456789'
    expect(wrapLines(`open ${address} now`, 20)).to.equal(`open\n${address}\nnow`)
  })

  it('stays as it is where it fits', () => {
    expect(wrapLines('a  b\n\n   c', 6)).to.equal('a  b\n\n   c')
    expect(wrapCommand('  $ billing-cli app list', 24)).to.equal('  $ billing-cli app list')
  })

  it('is broken as a shell reads it where it is a command: never within quotes, nor before the value of an option', () => {
    expect(wrapCommand('  $ billing-cli app update 1 --name "The long name" --accent=\'#fff 000\'', 30)).to.equal(
      '  $ billing-cli app update 1 \\\n      --name "The long name" \\\n      --accent=\'#fff 000\'',
    )
  })
})
