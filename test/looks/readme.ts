import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openCli } from '../cli/run-cli.ts'
import { onSimulatedTerminal } from '../cli/simulated-terminal.ts'
import { startBankScenario, transfer } from '../pages/bank-scenario.ts'
import { PHONE, startBrowser } from '../pages/browser.ts'
import { MONTHLY } from '../support/factories.ts'
import { changeApp, enableMethod } from '../support/operators.ts'
import { pageOf, shownOn } from '../support/screen.ts'
import { BRAND } from '../pages/scenes.ts'

const COLOURS = ['light', 'dark'] as const
const COLUMNS = 80
const QUALITY = 82
/** Below a screen, so that the page does not scroll. */
const MARGIN = 50
/** A terminal is drawn dark; turned round, each colour keeps its hue. */
const LIGHT_TERMINAL = 'pre { filter: invert(1) hue-rotate(180deg) }'

/** The pictures of the README: three pages of a phone and two screens of the command line, `<name>.<light|dark>.webp`. */
export async function lookForReadme(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await startBrowser()
  const page = await browser.newPage({ viewport: PHONE, locale: 'en', hasTouch: true, isMobile: true })
  await photographPages(page, folder)
  const wide = await browser.newPage({ viewport: { width: 800, height: 600 } })
  await photographScreens(wide, folder)
  await browser.close()
}

async function photographPages(page: Page, folder: string): Promise<void> {
  const scenario = await startBankScenario({ name: 'Sách Nói Hay', sandbox: false })
  const { ctx } = scenario.service
  await changeApp(ctx, 'tester', scenario.app.app, { logo: BRAND.logo, accent: BRAND.accent, receipts: true })
  await enableMethod(ctx, 'tester', scenario.app.app, 'card', { secretKey: 'sk_live_1', webhookSecret: 'whsec_1' })
  const { prices } = await scenario.plan('premium', { ...MONTHLY, name: 'Monthly' })
  const { checkout_url: url, transaction_id } = await scenario.checkout({ price_id: prices[0] })
  await photograph(page, url, folder, 'checkout')
  await photograph(page, `${url}/bank`, folder, 'bank')
  await transfer(scenario, transaction_id, MONTHLY.amount)
  await photograph(page, `${url}/paid`, folder, 'paid')
  await scenario.service.stop()
}

async function photograph(page: Page, url: string, folder: string, name: string): Promise<void> {
  for (const colorScheme of COLOURS) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(url)
    await save(page, { x: 0, y: 0, ...PHONE }, join(folder, `${name}.${colorScheme}.webp`))
  }
}

async function photographScreens(page: Page, folder: string): Promise<void> {
  const cli = openCli()
  const { app_id: app } = await cli.json(['demo'])
  const [customer] = await cli.json(['customer', 'list', String(app)])
  for (const words of [
    ['find', customer!.email],
    ['stats', String(app)],
  ]) {
    const { raw } = await onSimulatedTerminal(cli.env, words, [], COLUMNS)
    const lines = await shownOn(COLUMNS, raw.replaceAll('\n', '\r\n'))
    const written = lines.findLastIndex(({ text }) => text !== '') + 1
    for (const colour of COLOURS) {
      await page.setContent(pageOf(words.join(' '), lines.slice(0, written)))
      await page.addStyleTag({ content: `body { margin: 0 } ${colour === 'light' ? LIGHT_TERMINAL : ''}` })
      const box = (await page.locator('pre').boundingBox())!
      await page.setViewportSize({ width: Math.ceil(box.width), height: Math.ceil(box.height) + MARGIN })
      await save(page, box, join(folder, `${words[0]!}.${colour}.webp`))
    }
  }
}

/** Playwright writes no WebP, the browser does: a quarter of the size of a PNG. */
async function save(
  page: Page,
  clip: { x: number; y: number; width: number; height: number },
  path: string,
): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const shot = { format: 'webp', quality: QUALITY, clip: { ...clip, scale: 1 } } as const
  const { data } = await session.send('Page.captureScreenshot', shot)
  writeFileSync(path, Buffer.from(data, 'base64'))
  await session.detach()
}
