import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import { accessibilityErrors } from '../pages/audit.ts'
import { DESKTOP, PHONE, startBrowser, visit, type Visit } from '../pages/browser.ts'
import { startService, type TestService } from '../support/api.ts'

/** What these tests read of an element: the checker of these files knows no browser. */
interface Element {
  readonly id: string
  readonly textContent: string
  readonly scrollWidth: number
  readonly clientWidth: number
  readonly lastElementChild: Element | null
  getAttribute(name: string): string | null
  hasAttribute(name: string): boolean
  querySelectorAll(selector: string): Iterable<Element>
}

/** Text, because the checker of these files knows no browser. */
const BROKEN_NAMES = String.raw`(() => {
  const calls = [...document.querySelectorAll('main code')].filter(({ textContent }) => /^[A-Z]+ \//.test(textContent))
  const broken = []
  let names = 0
  for (const call of calls) {
    const letters = []
    const texts = document.createTreeWalker(call, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      for (let at = 0; at < texts.currentNode.length; at += 1) {
        const range = document.createRange()
        range.setStart(texts.currentNode, at)
        range.setEnd(texts.currentNode, at + 1)
        letters.push(range.getBoundingClientRect().top)
      }
    }
    for (const { 0: name, index } of call.textContent.matchAll(/\/[^/ ?]+/g)) {
      names += 1
      if (new Set(letters.slice(index, index + name.length)).size > 1) broken.push(name)
    }
  }
  return { names, broken }
})()`

describe('the page of the API reference', () => {
  let browser: Browser
  let service: TestService
  let visitor: Visit
  let page: Page

  before(async () => {
    browser = await startBrowser()
    service = await startService()
    visitor = await visit(browser, [service.url])
    page = visitor.page
  })

  after(async () => {
    await browser.close()
    await service.stop()
  })

  afterEach(() => expect([visitor.complaints, visitor.outside]).to.deep.equal([[], []]))

  /** Opens the page anew. */
  const open = async (viewport: typeof PHONE, hash = '') => {
    await page.setViewportSize(viewport)
    // An address that differs by its hash alone would load nothing.
    await page.goto('about:blank')
    return page.goto(`${service.url}/docs${hash}`)
  }

  // Opened once, because these tests change nothing in it but its size.
  describe('as it is opened', () => {
    let policy: string | undefined

    before(async () => {
      const answer = await open(PHONE)
      policy = answer?.headers()['content-security-policy']
    })
    beforeEach(() => page.setViewportSize(PHONE))

    it('has a policy that allows nothing else, and obeys it', () => {
      expect(policy).to.include("default-src 'none'")
    })

    for (const [name, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
      it(`is readable on a ${name}`, async () => {
        await page.setViewportSize(viewport)
        expect(await accessibilityErrors(page)).to.deep.equal([])
        expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).to.equal(true)
      })
    }

    it('shows every column of every table on a phone, without scrolling sideways', async () => {
      const widths = await page
        .locator('.scroll')
        .evaluateAll((tables: Element[]) => tables.map((table) => [table.scrollWidth, table.clientWidth] as const))
      expect(widths).not.to.deep.equal([])
      for (const [inside, shown] of widths) expect(inside).to.be.at.most(shown)
    })

    it('has the column required only where a field is required', async () => {
      await page.setViewportSize(DESKTOP)
      const ofUpdate = page.locator('#update-a-plan ~ .scroll').first().locator('th')
      expect(await ofUpdate.allTextContents()).to.deep.equal(['field', 'type', ''])
      const required = await page.locator('table').evaluateAll((tables: Element[]) =>
        tables.flatMap((table) => {
          const cells = [...table.querySelectorAll('[data-column="required"]')]
          return cells.length === 0 ? [] : [cells.map(({ textContent }) => textContent)]
        }),
      )
      expect(required).not.to.deep.equal([])
      for (const column of required) expect(column).to.include('yes')
    })

    it('on a phone breaks a path before a slash, never inside a name, and has evenly spaced lines around a link', async () => {
      const { names, broken } = await page.evaluate<{ names: number; broken: string[] }>(BROKEN_NAMES)
      expect(names).to.be.above(50)
      expect(broken).to.deep.equal([])
      const heights = await page.evaluate<[number, number][]>(`
      [...document.querySelectorAll('main p:has(a)')].map((paragraph) => {
        const { clientHeight: withLink, innerHTML } = paragraph
        for (const link of paragraph.querySelectorAll('a')) link.replaceWith(link.textContent)
        const without = paragraph.clientHeight
        paragraph.innerHTML = innerHTML
        return [withLink, without]
      })`)
      expect(heights).not.to.deep.equal([])
      for (const [withLink, without] of heights) expect(withLink).to.equal(without)
    })

    it('sets a part in larger type than what belongs to it, and names the mode of each form of a checkout', async () => {
      const sizeOf = (tag: string): Promise<number> =>
        page.evaluate(`parseFloat(getComputedStyle(document.querySelector('main ${tag}')).fontSize)`)
      const [title, part, call] = [await sizeOf('h1'), await sizeOf('h2'), await sizeOf('h3')]
      expect(title).to.be.above(part)
      expect(part).to.be.above(call)
      const text = await page.innerText('main')
      expect(text).to.include('If mode is subscription:').and.to.include('If mode is payment:')
    })

    it('has a table of contents whose links lead to their headings', async () => {
      const targets = await page.evaluate<[href: string, places: number][]>(`
        [...document.querySelectorAll('nav .contents a')]
          .map((link) => link.getAttribute('href'))
          .map((href) => [href, document.querySelectorAll('[id="' + href.slice(1) + '"]').length])`)
      expect(targets.map(([href]) => href)).to.include('#create-a-checkout-session')
      expect(new Map(targets).size).to.equal(targets.length)
      for (const [href, places] of targets) expect(places, href).to.equal(1)
    })
  })

  for (const path of ['/docs', '/openapi.json']) {
    it(`GET ${path} is made once, and only sent to those who do not have it`, async () => {
      const first = await service.call('GET', path)
      expect(first.status).to.equal(200)
      expect(first.headers['cache-control']).to.equal('public, max-age=300')
      const etag = String(first.headers['etag'])
      const again = await service.call('GET', path, { headers: { 'If-None-Match': etag } })
      expect([again.status, again.text, again.headers['etag']]).to.deep.equal([304, '', etag])
      const other = await service.call('GET', path, { headers: { 'If-None-Match': '"another"' } })
      expect([other.status, other.text]).to.deep.equal([200, first.text])
      const head = await service.call('HEAD', path)
      expect([head.status, head.text, head.headers['etag']]).to.deep.equal([200, '', etag])
    })
  }

  it('is rendered once for all requests', async () => {
    const fresh = await startService()
    const { ctx } = fresh
    try {
      const first = await fresh.call('GET', '/docs')
      // Rendered now, its links would begin with another path.
      Object.assign(ctx, { config: { ...ctx.config, baseUrl: 'https://pay.example/billing' } })
      for (let calls = 0; calls < 3; calls += 1) expect((await fresh.call('GET', '/docs')).text).to.equal(first.text)
    } finally {
      await fresh.stop()
    }
  })

  for (const [name, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
    it(`keeps its index in view on a ${name}, and searches by keyboard alone`, async () => {
      await open(viewport, '#get-an-event')
      const box = await page.locator('.index').boundingBox()
      expect(box?.y).to.be.within(0, 5)
      await page.keyboard.press('/')
      await page.keyboard.type('REFUND total')
      const shown = page.locator('.contents li:visible a')
      expect(await shown.allTextContents()).to.deep.equal(['transaction.refunded'])
      expect(await page.locator('.search output').textContent()).to.equal('1 part')
      await page.keyboard.press('Enter')
      expect(new URL(page.url()).hash).to.equal('#transaction-refunded')
      await page.keyboard.press('/')
      await page.keyboard.press('Escape')
      expect(await page.locator('.contents li[hidden]').count()).to.equal(0)
    })
  }

  it('opens one language of a sample at a time, and has a link at each heading', async () => {
    await open(PHONE)
    const languages = page.locator('#create-a-plan ~ .samples').first().locator('details')
    for (const at of [0, 3]) await languages.nth(at).locator('summary').press('Enter')
    const opened = await languages.evaluateAll((each: Element[]) => each.map((one) => one.hasAttribute('open')))
    expect(opened).to.deep.equal([false, false, false, true])
    expect(await languages.nth(3).locator('pre').isVisible()).to.equal(true)
    const anchors = await page
      .locator('.text :is(h2, h3)')
      .evaluateAll((headings: Element[]) =>
        headings.map(({ id, lastElementChild }) => [id, lastElementChild?.getAttribute('href')] as const),
      )
    expect(anchors.length).to.be.above(40)
    for (const [id, href] of anchors) expect(href).to.equal(`#${id}`)
  })
})
