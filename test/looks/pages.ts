import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DESKTOP, PHONE, startBrowser, visit } from '../pages/browser.ts'
import { SCENES, withShop } from '../pages/scenes.ts'

const SCREENS = {
  phone: { viewport: PHONE, hasTouch: true, isMobile: true },
  desktop: { viewport: DESKTOP },
}

/** A picture of every page: `<page>.<phone|desktop>.<en|vi>.<light|dark>.png`. */
export async function lookAtPages(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await startBrowser()
  for (const [title, scene] of Object.entries(SCENES)) {
    await withShop('Sách Nói Hay', async (story, prices) => {
      const url = await scene(story, prices)
      for (const [screen, options] of Object.entries(SCREENS)) {
        for (const locale of ['en', 'vi'] as const) {
          for (const colorScheme of ['light', 'dark'] as const) {
            const visitor = await visit(browser, [story.service.url], {
              ...options,
              locale,
              colorScheme,
              reducedMotion: 'reduce',
            })
            await visitor.page.goto(url)
            const name = `${title.replaceAll(/\W+/g, '-')}.${screen}.${locale}.${colorScheme}.png`
            // A picture of the full page forgets that a phone has no pointer.
            const height = await visitor.page.evaluate<number>('document.documentElement.scrollHeight')
            await visitor.page.setViewportSize({ width: options.viewport.width, height })
            await visitor.page.screenshot({ path: join(folder, name) })
            await visitor.end()
          }
        }
      }
    })
  }
  await browser.close()
}
