import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core'
import { listen } from '../support/http-server.ts'

const ARTIFACTS = join(import.meta.dirname, '../artifacts')
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Nothing leaves this machine, not even a DNS query.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
]

export const PHONE = { width: 390, height: 844 }
export const DESKTOP = { width: 1280, height: 800 }

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: FLAGS })
}

/** A seller's site: what `success_url` and `cancel_url` lead to. */
export interface SellerSite {
  readonly url: string
  stop(): void
}

export async function startSellerSite(): Promise<SellerSite> {
  const server = createServer((_request, response) => {
    response
      .setHeader('Content-Type', 'text/html')
      .end('<!doctype html><link rel="icon" href="data:,"><title>Shop</title>')
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A page of a new visitor, with its errors: blocked by the policy, thrown by a script, not found. */
export interface Visit {
  readonly page: Page
  readonly complaints: string[]
  /** Requests to origins that are not `known`. Those to other machines fail, because no name is found. */
  readonly outside: string[]
  end(): Promise<void>
}

export async function visit(
  browser: Browser,
  known: readonly string[],
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: PHONE, ...options })
  const complaints: string[] = []
  const outside: string[] = []
  // Not by `route`, which takes every request through this process and turns the browser's cache off.
  context.on('request', (request) => {
    if (!known.includes(new URL(request.url()).origin)) outside.push(request.url())
  })
  context.on('requestfailed', (request) => {
    const at = outside.indexOf(request.url())
    // What the page's policy refuses is not sent.
    if (at !== -1 && request.failure()?.errorText === 'csp') outside.splice(at, 1)
  })
  const page = await context.newPage()
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { page, complaints, outside, end: () => context.close() }
}

/** Lets a visitor use pages, of which none may have errors or ask for anything outside. */
export async function withVisitor(
  browser: Browser,
  known: readonly string[],
  options: BrowserContextOptions,
  use: (visitor: Visit) => Promise<void>,
): Promise<void> {
  const visitor = await visit(browser, known, options)
  try {
    await use(visitor)
    expect([visitor.complaints, visitor.outside]).to.deep.equal([[], []])
  } finally {
    await visitor.end()
  }
}

/** What Chromium says when a busy machine let it draw nothing in time. */
const NO_FRAME = /Unable to capture screenshot/
const MAX_TRIES = 5

/** A picture of what is shown. On a busy machine, Chromium is asked again. */
export async function takePicture(shown: Page | Locator): Promise<Buffer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await shown.screenshot()
    } catch (error) {
      if (tries === MAX_TRIES || !NO_FRAME.test(String(error))) throw error
    }
  }
}

/** The path of a picture with this name; the folder is not under version control. */
export function artifact(name: string): string {
  mkdirSync(ARTIFACTS, { recursive: true })
  return join(ARTIFACTS, name)
}
