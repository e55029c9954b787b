/** The page of `tenon report` in a real Chromium (ADO-1). */
import assert from 'node:assert/strict'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Browser } from 'playwright-core'
import { launchChromium, schemes, skip, Visit } from '../../console/browser/browser.test-support.ts'
import { htmlOf } from '../html.ts'
import { aReport, aShadow, hostile } from '../report.test-support.ts'
import { shadowHtml } from '../shadow-pages.ts'

let folder: string
let browser: Browser

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-report-page-'))
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  if (skip === false) await browser.close()
  await rm(folder, { recursive: true })
})

async function open(html: string): Promise<Visit> {
  const path = join(folder, 'report.html')
  await writeFile(path, html)
  assert.ok((await stat(path)).size <= 500_000)
  return await Visit.open(browser, pathToFileURL(path).href)
}

test('ADO-1 the page opens without requests and errors, and everybody can use it, narrow, wide, light and dark', {
  skip,
}, async () => {
  const visit = await open(htmlOf(aReport()))
  for (const width of [360, 1280])
    for (const colorScheme of schemes) {
      await visit.page.setViewportSize({ width, height: 900 })
      await visit.page.emulateMedia({ colorScheme })
      assert.equal(await visit.overflow(), 0, `${width}`)
      assert.deepEqual(await visit.violations(), [], `${width} ${colorScheme}`)
      await visit.screenshot(`report-${width}-${colorScheme}`)
    }
  assert.deepEqual(visit.faults, [])
  assert.deepEqual(visit.requests, [`GET ${new URL(visit.page.url()).pathname}`])
  // The prices that are missing, and what comes first.
  assert.match(await visit.text('main'), /The price of 2 nodes is not known/)
  assert.deepEqual(await visit.page.locator('h2').allTextContents(), [
    'In short',
    'What stands in the way',
    'Risks',
    'Next',
    'What it costs now',
  ])
})

test('ADO-1 names of objects are text and never markup, however many there are', { skip }, async () => {
  const visit = await open(htmlOf(aReport(hostile, 5000)))
  assert.deepEqual(visit.faults, [])
  assert.equal(await visit.page.locator('script, img, iframe').count(), 0)
  await visit.page.setViewportSize({ width: 360, height: 900 })
  assert.equal(await visit.overflow(), 0)
  assert.deepEqual(await visit.violations(), [])
})

test('ADO-1 on paper everything is open', { skip }, async () => {
  const visit = await open(htmlOf(aReport()))
  await visit.page.emulateMedia({ media: 'print' })
  assert.ok(await visit.page.locator('details table').first().isVisible())
})

test('ADO-7 the page of --shadow opens without requests and errors, narrow, wide, light and dark', {
  skip,
}, async () => {
  const visit = await open(shadowHtml(aShadow()))
  for (const [width, colorScheme] of [
    [360, 'light'],
    [1280, 'dark'],
  ] as const) {
    await visit.page.setViewportSize({ width, height: 900 })
    await visit.page.emulateMedia({ colorScheme })
    assert.equal(await visit.overflow(), 0, `${width}`)
    assert.deepEqual(await visit.violations(), [], `${width} ${colorScheme}`)
    await visit.screenshot(`shadow-${width}-${colorScheme}`)
  }
  assert.deepEqual(visit.faults, [])
  assert.deepEqual(visit.requests, [`GET ${new URL(visit.page.url()).pathname}`])
  assert.match(await visit.text('main'), /Nothing was observed in 1 period/)
})

test('ADO-7 names in a comparison are text and never markup, however many there are', { skip }, async () => {
  const visit = await open(shadowHtml(aShadow(hostile, 5000)))
  assert.deepEqual(visit.faults, [])
  assert.equal(await visit.page.locator('script, img, iframe').count(), 0)
})
