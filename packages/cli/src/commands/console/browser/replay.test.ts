import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { TraceFile, writeSnapshot } from '@tenon/ask'
import type { Browser } from 'playwright-core'
import { stringify } from 'yaml'
import { anHour, recordedPool } from '../../../testing/recording.test-support.ts'
import { snapshot } from '../../../testing/snapshot.test-support.ts'
import { launchChromium, skip, Visit, widths } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined
let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-replayed-'))
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

test('CON-19 a recording replays with the slider, and two variants stand side by side with their prices', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const [cluster, trace, variant] = [
    'cluster.jsonl',
    'hour.tnr',
    `${'general-purpose-'.repeat(12)}.yaml`,
  ].map((name) => join(folder, name))
  assert.ok(cluster !== undefined && trace !== undefined && variant !== undefined)
  await writeSnapshot(cluster, snapshot)
  const file = await TraceFile.create(trace)
  for (const record of anHour) file.write(record)
  await file.close()
  const slow = { ...recordedPool.spec, disruption: { consolidateAfter: 'Never' } }
  await writeFile(variant, stringify({ ...recordedPool, spec: slow }))
  const link = await servedPage(t, { snapshot: cluster, trace, variant: [variant] })
  const visit = await Visit.open(browser, link)
  const { page } = visit
  await visit.goTo('/replay')
  await page.getByRole('table', { name: 'Variants' }).waitFor({ timeout: 30_000 })
  const rows = await page.getByRole('table', { name: 'Variants' }).locator('tbody tr').allTextContents()
  assert.equal(rows.length, 3, rows.join('\n'))
  for (const row of rows) assert.match(row, /0\.20/)
  const slider = page.getByRole('slider', { name: 'Time' })
  const cards = page.locator('.two section')
  assert.equal(await cards.count(), 3)
  assert.match((await cards.nth(0).textContent()) ?? '', /as recorded0\.2000 in this hour/)
  assert.match((await cards.nth(1).textContent()) ?? '', /0\.2000 in this hour/)
  const first = await slider.getAttribute('aria-valuetext')
  await slider.focus()
  await page.keyboard.press('End')
  assert.notEqual(await slider.getAttribute('aria-valuetext'), first)
  assert.deepEqual(await visit.violations(), [])
  await visit.screenshot('replay-recording')
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 })
    assert.ok((await visit.overflow()) <= 0, `at ${width}: scrolls sideways`)
    assert.deepEqual(await visit.crowded(), [], `at ${width}`)
    const table = page.getByRole('region', { name: 'Variants' })
    const hidden = await table.evaluate(({ clientWidth, scrollWidth }) => scrollWidth - clientWidth)
    assert.ok(hidden <= 0, `at ${width}: prices are out of sight`)
  }
  assert.deepEqual(visit.faults, [])
})
