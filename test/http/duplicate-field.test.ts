import { expect } from 'chai'
import { describe, it } from 'mocha'
import { duplicateField } from '#http/duplicate-field.ts'

describe('duplicate fields of a body', () => {
  it('are found at any depth, and named by their path', () => {
    const cases: [json: string, path: string][] = [
      ['{"a":1,"a":1}', 'a'],
      ['{"a":1,"b":{"c":1,"c":2}}', 'b.c'],
      ['{"prices":[{"amount":1},{"amount":1,"trial":{"amount":0,"amount":1}}]}', 'prices.1.trial.amount'],
      ['[{"a":1},[0,{"b":[],"b":{}}]]', '1.1.b'],
      ['{"\\u0061":1,"a":2}', 'a'],
      ['{"__proto__":1,"__proto__":2}', '__proto__'],
      ['{ "a" : { } , "b" : [ ] , "a" : null }', 'a'],
      ['{"a\\"{":1,"x":"}","a\\"{":1}', 'a"{'],
      ['{"":1,"":2}', ''],
    ]
    for (const [json, path] of cases) expect(duplicateField(json), json).to.equal(path)
  })

  it('are not names that repeat in different objects, or as values', () => {
    const fine = [
      '{"a":{"a":{"a":"a"}},"b":[{"a":1},{"a":1}]}',
      '["a","a"]',
      '{"a":"b","b":"a"}',
      '{"a":"\\",\\"a\\":1"}',
      '{"A":1,"a":2}',
      '{"toString":1,"constructor":2}',
      '"a"',
      'null',
      '-1.5e3',
    ]
    for (const json of fine) expect(duplicateField(json), json).to.equal(null)
  })

  it('are searched for in 100 KB of the deepest nesting without a stack overflow', () => {
    const depth = 20_000
    expect(duplicateField('{"a":'.repeat(depth) + '1' + '}'.repeat(depth))).to.equal(null)
    expect(duplicateField('['.repeat(depth) + '{"a":1,"a":1}' + ']'.repeat(depth))).to.match(/^(0\.)+a$/)
  })
})
