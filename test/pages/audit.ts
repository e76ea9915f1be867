import type { Page } from 'playwright-core'

/** These run in the page; text, because the checker of these files knows no browser. */
const CONTRAST = String.raw`
  const errors = []
  const name = (element) => element.tagName.toLowerCase() + ' "' + element.textContent.trim().slice(0, 30) + '"'
  const isShown = (element) => element.checkVisibility() && !element.closest('.off-screen, .skip, svg')
  const colour = (text) => text.match(/[\d.]+/g).map(Number)
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => {
      const share = part / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a)
    return (high + 0.05) / (low + 0.05)
  }
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = colour(getComputedStyle(at).backgroundColor)
      if (a === 1) return [r, g, b]
    }
    return [255, 255, 255]
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement
    if (!texts.currentNode.textContent.trim() || !isShown(element) || element.closest('noscript')) continue
    const ratio = contrast(colour(getComputedStyle(element).color), ground(element))
    if (ratio < 4.5) errors.push('contrast ' + ratio.toFixed(2) + ' of ' + name(element))
  }`

const REST = String.raw`
  for (const element of document.querySelectorAll('button, a, summary')) {
    if (!isShown(element)) continue
    const label = (element.getAttribute('aria-label') ?? element.textContent).trim()
    if (!label) errors.push('no name: ' + element.outerHTML.slice(0, 60))
    const { height, width } = element.getBoundingClientRect()
    if (height < 44 || width < 44) errors.push('small: ' + name(element) + ' ' + width + ' x ' + height)
  }
  for (const element of document.querySelectorAll('.method, .copy')) {
    if (!isShown(element)) continue
    const edge = contrast(colour(getComputedStyle(element).borderTopColor), ground(element.parentElement))
    if (edge < 3) errors.push('edge ' + edge.toFixed(2) + ' of ' + name(element))
  }
  for (const image of document.querySelectorAll('img')) if (!image.alt) errors.push('no alternative text')
  for (const image of document.querySelectorAll('img')) if (!image.naturalWidth) errors.push('broken picture')
  if (document.querySelectorAll('h1').length !== 1) errors.push('not one h1')
  for (const heading of document.querySelectorAll('h1')) {
    const { width } = heading.getBoundingClientRect()
    const letter = parseFloat(getComputedStyle(heading).fontSize)
    if (width < 5 * letter) errors.push('squeezed: ' + name(heading) + ' into ' + width)
  }
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (words.nextNode()) {
    const node = words.currentNode
    if (!isShown(node.parentElement)) continue
    for (const { 0: word, index } of node.textContent.matchAll(/thanh\stoán|ngân\shàng|chuyển\skhoản|chúng\stôi|vui\slòng|hết\shạn|xác\snhận|còn\sthiếu|(?<!\S)[^\s-]{2,10}(?!\S)/gi)) {
      const range = document.createRange()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const lines = new Set([...range.getClientRects()].map(({ top }) => top))
      if (lines.size > 1) errors.push('broken word: ' + word + ' in ' + name(node.parentElement))
    }
  }
  if (document.querySelectorAll('main').length !== 1) errors.push('not one main')
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id)
  if (new Set(ids).size !== ids.length) errors.push('an id twice')
  for (const element of document.querySelectorAll('[aria-labelledby]')) {
    if (!document.getElementById(element.getAttribute('aria-labelledby'))) errors.push('a label that is not there')
  }
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth > clientWidth) errors.push('scrolls sideways: ' + scrollWidth + ' of ' + clientWidth)`

/**
 * What is wrong with a page for people: text of less contrast than 4.5 : 1, edges of controls below 3 : 1, targets under 44 pixels,
 * controls and pictures without a name, more or less than one heading, a heading that is squeezed into a column, a word or code of up to ten
 * letters without a hyphen or a Vietnamese word of two syllables that is broken over two lines, scrolling sideways.
 */
export async function accessibilityErrors(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {${CONTRAST}${REST}; return errors })()`)
}

/** Text of less contrast than 4.5 : 1, of anything that a browser shows. */
export async function contrastFaultsOf(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {${CONTRAST}; return errors })()`)
}

const CONTROLS = `[...document.querySelectorAll('a[href], button:enabled, summary')].filter((one) => one.checkVisibility())`
/** Where the keyboard is: its number among the controls, -1 for none; whether it is seen there; how far down the page it is. */
const FOCUSED = `(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  const { top, bottom } = document.activeElement.getBoundingClientRect()
  return {
    number: ${CONTROLS}.indexOf(document.activeElement),
    name: document.activeElement.textContent.trim().slice(0, 30),
    isSeen: outlineStyle !== 'none' && outlineWidth === '3px' && top >= -1 && bottom <= innerHeight + 1,
    y: document.activeElement.matches('.skip') ? 0 : top + scrollY,
  }
})()`

/** What somebody meets who goes through a page of one column by Tab alone: a control that is left out, not seen, or above the last one. */
export async function keyboardErrors(page: Page): Promise<string[]> {
  const count = await page.evaluate<number>(`${CONTROLS}.length`)
  const errors: string[] = []
  let last = { number: -1, y: 0 }
  for (let pressed = 0; pressed < count; pressed += 1) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate<{ number: number; name: string; isSeen: boolean; y: number }>(FOCUSED)
    if (at.number !== last.number + 1) errors.push(`after control ${last.number} comes ${at.number}, "${at.name}"`)
    if (!at.isSeen) errors.push(`not seen: "${at.name}"`)
    if (at.y < last.y - 1) errors.push(`goes up to "${at.name}"`)
    last = at
  }
  return errors
}
