import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { DESKTOP, PHONE, startBrowser, visit } from '../pages/browser.ts'
import { SCENES, withShop, type Scene } from '../pages/scenes.ts'
import { LOCALES } from '#shared/locale.ts'

const SCREENS = {
  phone: { viewport: PHONE, hasTouch: true, isMobile: true },
  desktop: { viewport: DESKTOP },
}

interface Look {
  readonly scene: Scene
  readonly options?: BrowserContextOptions
  /** What the visitor does before the picture is taken. */
  readonly act?: (page: Page) => Promise<unknown>
}

/** A scene that something is done in. */
function look(title: keyof typeof SCENES, changes: Omit<Look, 'scene'>): Look {
  return { scene: SCENES[title], ...changes }
}

const LOOKS: Readonly<Record<string, Look>> = {
  ...Object.fromEntries(Object.entries(SCENES).map(([title, scene]) => [title, { scene }])),
  'a bank transfer, without scripts': look('a bank transfer', { options: { javaScriptEnabled: false } }),
  'a bank transfer, with the banking apps': look('a bank transfer', {
    act: (page) => page.evaluate("document.querySelector('.bank-apps').open = true"),
  }),
  'a bank transfer, with its note copied': look('a bank transfer', {
    act: (page) => page.locator('.copy').first().click(),
  }),
  'a checkout, by keyboard': look('a checkout with every method', {
    act: async (page) => {
      for (const key of ['Tab', 'Enter', 'Tab']) await page.keyboard.press(key)
    },
  }),
  'a checkout that refuses a promotion code': look('a checkout that takes a promotion code', {
    act: async (page) => {
      await page.locator('summary').click()
      await page.locator('#promotion-code').fill('SALE2020')
      await page.keyboard.press('Enter')
      await page.locator('#code-refused').waitFor()
    },
  }),
  'a renewal that was just paid, paying again': look('a renewal that was just paid', {
    act: (page) => page.locator('summary').click(),
  }),
  'a checkout of a lifetime subscription, paying anyway': look('a checkout of a lifetime subscription', {
    act: (page) => page.locator('summary').click(),
  }),
  welcome: { scene: ({ service }) => Promise.resolve(`${service.url}/`) },
  'API reference': { scene: ({ service }) => Promise.resolve(`${service.url}/docs`) },
  'reminders that are stopped': look('asking to stop reminders', {
    act: async (page) => {
      const stop = page.locator('button')
      if (await stop.isVisible()) await stop.click()
    },
  }),
}

/** A picture of every page: `<page>.<phone|desktop>.<en|vi>.<light|dark>.png`. */
export async function lookAtPages(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await startBrowser()
  for (const [title, { scene, options, act }] of Object.entries(LOOKS)) {
    await withShop('Sách Nói Hay', async (scenario, prices) => {
      const url = await scene(scenario, prices)
      for (const [screen, device] of Object.entries(SCREENS)) {
        for (const locale of LOCALES) {
          for (const colorScheme of ['light', 'dark'] as const) {
            const visitor = await visit(browser, [scenario.service.url], {
              ...device,
              ...options,
              locale,
              colorScheme,
              reducedMotion: 'reduce',
            })
            await visitor.page.goto(url)
            await act?.(visitor.page)
            const name = `${title.replaceAll(/\W+/g, '-')}.${screen}.${locale}.${colorScheme}.png`
            // A picture of the full page forgets that a phone has no pointer.
            const height = await visitor.page.evaluate<number>('document.documentElement.scrollHeight')
            await visitor.page.setViewportSize({ width: device.viewport.width, height })
            // However slow the machine is.
            await visitor.page.screenshot({ path: join(folder, name), timeout: 0 })
            await visitor.end()
          }
        }
      }
    })
  }
  await browser.close()
}
