import { expect } from 'chai'
import { describe, it } from 'mocha'
import { templateEngine } from '#shared/template-engine.ts'

const forHtml = templateEngine({ escapes: true })
const forText = templateEngine({ escapes: false })

/** What a template prints with these values. */
function filled(template: string, values: object, engine = forHtml): string {
  return engine.renderString(template, values)
}

describe('templates', () => {
  it('print a value as text in HTML, and as markup only where the template says so', () => {
    const values = { name: `"A" & 'B' <b>` }
    expect(filled('<%= name %>', values)).to.equal('&quot;A&quot; &amp; &#39;B&#39; &lt;b&gt;')
    expect(filled('<%~ name %>', values)).to.equal(values.name)
    expect(filled('<%= name %>', values, forText)).to.equal(values.name)
  })

  it('never run what a value says', () => {
    expect(filled('<%~ name %>', { name: '<%= 7 * 11 %>' })).to.equal('<%= 7 * 11 %>')
  })

  it('print zero and false, and nothing for null', () => {
    expect(filled('<%= a %>,<%= b %>,<%= c %>', { a: 0, b: false, c: null })).to.equal('0,false,')
  })

  it('keep every blank and line around their tags', () => {
    expect(filled('a\n<% if (on) { %>\nb\n<% } %>\n', { on: true })).to.equal('a\n\nb\n\n')
  })

  it('take a missing field as false in a condition', () => {
    expect(filled('<% if (price.amount) { %>due<% } %>', { price: {} })).to.equal('')
  })

  it('print no list, object or function', () => {
    for (const value of [[1], {}, () => 'a']) expect(() => filled('<%= value %>', { value })).to.throw('of the type')
  })

  it('of pages name the line of an error', () => {
    const forPages = templateEngine({ escapes: true, views: import.meta.dirname })
    expect(() => filled('Hello,\n<%= amount %>', {}, forPages)).to.throw(/^line 2[^]*amount is not defined$/)
  })

  const missing = {
    'a name, printed': '<%= amount %>',
    'a name, in a condition': '<% if (amount) { %>due<% } %>',
    'a name, repeated over': '<% for (const one of amount) { %>due<% } %>',
    'a field, printed': '<%= price.amount %>',
    'a field, printed as markup': '<%~ price.amount %>',
  }
  for (const [what, template] of Object.entries(missing)) {
    it(`throw for a value that is not set: ${what}`, () => {
      expect(() => filled(template, { price: {} })).to.throw(
        /amount is not defined|prints a value of the type undefined/,
      )
    })
  }
})
