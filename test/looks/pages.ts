import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DESKTOP, PHONE, startBrowser, visit } from '../pages/browser.ts'
import { SCENES, withShop } from '../pages/scenes.ts'

const SCREENS = { phone: PHONE, desktop: DESKTOP }

/** A picture of every page: `<page>.<phone|desktop>.<en|vi>.<light|dark>.png`. */
export async function lookAtPages(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await startBrowser()
  for (const [title, scene] of Object.entries(SCENES)) {
    await withShop('Sách Nói Hay', async (story, prices) => {
      const url = await scene(story, prices)
      for (const [screen, viewport] of Object.entries(SCREENS)) {
        for (const locale of ['en', 'vi'] as const) {
          const visitor = await visit(browser, [story.service.url], { viewport, locale, hasTouch: screen === 'phone' })
          await visitor.page.goto(url)
          for (const colorScheme of ['light', 'dark'] as const) {
            await visitor.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
            const name = `${title.replaceAll(/\W+/g, '-')}.${screen}.${locale}.${colorScheme}.png`
            await visitor.page.screenshot({ path: join(folder, name), fullPage: true })
          }
          await visitor.end()
        }
      }
    })
  }
  await browser.close()
}
