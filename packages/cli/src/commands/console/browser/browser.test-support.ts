/** The page in a real Chromium: what is on it, what it asks for, and whether everybody can use it. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

/** Chromium of Debian, unless another one is named. */
const chromiumPath = process.env['TENON_CHROMIUM'] ?? '/usr/bin/chromium'
/** Why tests of the page cannot run here; false where they can. */
export const skip = existsSync(chromiumPath)
  ? false
  : `${chromiumPath} is not there: npm run browser installs it`

const screenshots =
  process.env['TENON_SCREENSHOTS'] ?? resolve(import.meta.dirname, '../../../../../../dist/screenshots')

/** Addresses of all views. */
export const views = [
  '/',
  '/map',
  '/map?as=table',
  '/pods',
  '/pools',
  '/decisions',
  '/what-if',
  '/cost',
  '/replay',
] as const
export const widths = [360, 1280, 2560] as const
export const schemes = ['light', 'dark'] as const

/** For a busy host; alone an answer takes a second at most. */
const answerMs = 120_000

export async function launchChromium(): Promise<Browser> {
  // Root has no sandbox to be in; the page is our own.
  return await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-gpu'] })
}

/** A page that was opened by its link. */
export class Visit {
  readonly page: Page
  readonly origin: string
  /** Errors on the console and in scripts, and requests to other hosts: there should be none. */
  readonly faults: string[] = []
  /** Method and path of each request to the console. */
  readonly requests: string[] = []

  private constructor(page: Page, link: string) {
    this.page = page
    this.origin = new URL(link).origin
    page.on('console', (message) => {
      if (message.type() === 'error') this.faults.push(`console: ${message.text()}`)
    })
    page.on('pageerror', (error) => this.faults.push(`script: ${error.message}`))
    page.on('request', (request) => {
      const { origin, pathname } = new URL(request.url())
      if (origin === this.origin) this.requests.push(`${request.method()} ${pathname}`)
      else if (!request.url().startsWith('blob:')) this.faults.push(`foreign: ${request.url()}`)
    })
  }

  /** @param link with its token. */
  static async open(browser: Browser, link: string): Promise<Visit> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    // Into each document before its own scripts: the policy of the page lets none in afterwards.
    await context.addInitScript({ content: axe.source })
    context.setDefaultTimeout(answerMs)
    const visit = new Visit(await context.newPage(), link)
    await visit.page.goto(link)
    return visit
  }

  /** Goes to a view by its address, and waits until it has what it asked for. */
  async goTo(path: string): Promise<void> {
    await this.page.goto(this.origin + path)
    await this.settled()
  }

  /** Until nothing is awaited any more. */
  async settled(): Promise<void> {
    await this.page.waitForFunction(
      () => document.querySelector('h1') !== null && document.querySelector('.awaited') === null,
      undefined,
      { timeout: answerMs },
    )
  }

  async text(selector = 'body'): Promise<string> {
    return (await this.page.locator(selector).first().textContent()) ?? ''
  }

  /** What keeps somebody from using the page, by axe-core. */
  async violations(): Promise<readonly string[]> {
    return await this.page.evaluate(async () => {
      const { axe: checker } = globalThis as { readonly axe?: typeof axe }
      if (checker === undefined) throw new Error('axe-core is not in the page')
      const { violations } = await checker.run(document, { resultTypes: ['violations'] })
      return violations.map(
        ({ id, nodes }) =>
          `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
      )
    })
  }

  /** Pixels that the page is wider than its window. */
  async overflow(): Promise<number> {
    return await this.page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
  }

  /** Cells of tables whose content reaches over their edge, into what is below. */
  async crowded(): Promise<readonly string[]> {
    return await this.page.evaluate(() =>
      [...document.querySelectorAll('td')]
        .filter((cell) => cell.scrollHeight > cell.clientHeight + 1)
        .map((cell) => `${cell.dataset['title'] ?? ''}: ${cell.textContent ?? ''}`),
    )
  }

  /** On every view, in light and dark and at every width, nothing is cut off, overlaps or breaks. */
  async fitsOnEveryView(name: string): Promise<void> {
    for (const path of views) {
      await this.goTo(path)
      for (const [at, width] of widths.entries()) {
        await this.page.emulateMedia({ colorScheme: schemes[at % schemes.length] ?? 'light' })
        await this.page.setViewportSize({ width, height: 900 })
        await this.settled()
        assert.ok((await this.overflow()) <= 0, `${path} at ${width}: scrolls sideways`)
        assert.deepEqual(await this.crowded(), [], `${path} at ${width}`)
        await this.screenshot(`${name}${path.replaceAll(/\W+/g, '-')}-${width}`)
      }
      for (const colorScheme of schemes) {
        await this.page.emulateMedia({ colorScheme })
        assert.deepEqual(await this.violations(), [], `${path} in ${colorScheme}`)
      }
    }
    assert.deepEqual(this.faults, [])
  }

  async screenshot(name: string): Promise<void> {
    await mkdir(screenshots, { recursive: true })
    await this.page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true })
  }
}
