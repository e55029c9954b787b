/** The page on a slow processor, and with answers that take their time. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import type { Browser, Page } from 'playwright-core'
import { snapshot } from '../../../testing/snapshot.test-support.ts'
import { launchChromium, skip, views, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

/** When something was painted first, since the page was asked for. */
async function paintedAfterMs(page: Page): Promise<number> {
  return await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => {
          const [first] = list.getEntriesByName('first-contentful-paint')
          if (first !== undefined) resolve(first.startTime)
        }).observe({ type: 'paint', buffered: true })
      }),
  )
}

/** Keeps requests back. @returns what lets them through. */
async function holding(page: Page, url: string | RegExp): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<undefined>()
  await page.route(url, async (route) => {
    await held.promise
    // A page that is left does not wait for its requests.
    await route.continue().catch(() => undefined)
  })
  return async () => {
    held.resolve(undefined)
    await page.unroute(url)
  }
}

test('PGE-12 on a processor ten times slower something true is on the screen within two seconds, and says what it waits for', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const folder = await mkdtemp(join(tmpdir(), 'tenon-slow-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'cluster.jsonl')
  await writeSnapshot(file, snapshot)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  const { origin, page } = visit
  await visit.settled()
  await page.reload()
  const usualMs = await paintedAfterMs(page)
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: 10 })

  await t.test('before the script is there', async () => {
    const release = await holding(page, '**/app.js')
    await page.goto(`${origin}/`, { waitUntil: 'commit' })
    await page.getByText('Loading the page…').waitFor()
    const tookMs = await paintedAfterMs(page)
    t.diagnostic(`painted after ${Math.round(tookMs)} ms; ${Math.round(usualMs)} ms when not throttled`)
    // A busy host may be slower by itself.
    assert.ok(tookMs < Math.max(2000, 20 * usualMs), `${tookMs} ms`)
    await release()
    await visit.settled()
  })

  await t.test('before the first picture, with the time so far', async () => {
    const release = await holding(page, '**/api/stream*')
    await page.goto(`${origin}/`)
    await page.getByText(/^Waiting for the first picture of the cluster… [1-9]\d* s$/).waitFor()
    assert.deepEqual(await visit.violations(), [])
    await visit.screenshot('slow-first-picture')
    await release()
    await visit.settled()
  })

  await t.test('on each view, while its answers are awaited', async () => {
    const release = await holding(page, /\/api\/(?!stream)/)
    const objects = ['/object?kind=Node&name=n1', '/object?kind=NodePool&name=web']
    for (const path of [...views, ...objects]) {
      await page.goto(origin + path)
      await page.waitForFunction(
        () =>
          document.querySelector('h1') !== null &&
          !/Loading the page|first picture/.test(document.body.textContent ?? ''),
      )
      const awaited = page.locator('.awaited')
      // Some views are complete without an answer.
      if ((await awaited.count()) === 0)
        assert.ok(['/map', '/map?as=table', '/decisions'].includes(path), path)
      else
        await awaited
          .first()
          .getByText(/[1-9]\d* s/)
          .waitFor()
      for (const text of await awaited.allTextContents())
        assert.match(text, /^Waiting for \w.*…( \d+ s)?$/, path)
      await visit.screenshot(`slow${path.replaceAll(/\W+/g, '-')}`)
    }
    await release()
  })
  assert.deepEqual(visit.faults, [])
})
