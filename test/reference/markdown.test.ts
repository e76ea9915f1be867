import { expect } from 'chai'
import { describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { referenceOf } from '#reference/markdown.ts'
import { openApiOf } from '#reference/openapi.ts'

describe('the reference of the API', () => {
  const markdown = referenceOf(openApiOf(API_ROUTES, 'https://paygate.seller.example'))
  const titles = new Set([...markdown.matchAll(/^### (.+)$/gm)].map(([, title = '']) => title))

  it('describes each object that a call returns', () => {
    const returned = new Set(
      [...markdown.matchAll(/^Returns the ([a-z ]+) with status/gm)].map(([, name = '']) => name),
    )
    expect(returned).to.include('promotion')
    expect([...returned].filter((name) => !titles.has(`The ${name} object`))).to.deep.equal([])
  })

  it('names what a provider_code can be besides the payment methods', () => {
    expect(markdown).to.match(/^\| `provider_code` \| string or null \|.*`promotion`/m)
  })

  it('says which characters the codes that a seller chooses can have', () => {
    const rows = markdown.split('\n').filter((line) => /^\| `(?:code|plan_ref)` \| string \| yes \|/.test(line))
    expect(rows).to.have.length(3)
    expect(rows.filter((row) => !/\d to \d+ characters of `/.test(row))).to.deep.equal([])
  })
})
