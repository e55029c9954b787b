import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { kinds } from '@tenon/api'
import type { Browser } from 'playwright-core'
import { snapshot } from '../../../testing/snapshot.test-support.ts'
import { serveApi } from '../../../testing/served-api.test-support.ts'
import { launchChromium, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

test('CON-8 a page whose cluster does not answer says so and why, before the first picture and after it, and is right again once it does', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const folder = await mkdtemp(join(tmpdir(), 'tenon-unreachable-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { cut, kubeconfig, local } = await serveApi(t, folder, snapshot.objects)
  const restore = await cut()
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig }))
  const { page } = visit
  await page.goto(`${visit.origin}/map?as=table`)
  await page.getByText(/^The cluster cannot be followed: .*; the picture is not there yet\.$/).waitFor()
  await restore()
  await page.getByTitle('strange', { exact: true }).first().waitFor()
  await page.getByText(/cannot be followed/).waitFor({ state: 'detached' })
  const restoreAgain = await cut()
  await page.getByText(/^The cluster does not answer; the picture is \d+s old\.$/).waitFor()
  assert.ok(await page.getByTitle('strange', { exact: true }).first().isVisible())
  assert.deepEqual(await visit.violations(), [])
  local.delete(kinds.node, undefined, 'strange')
  await restoreAgain()
  await page.getByTitle('strange', { exact: true }).first().waitFor({ state: 'detached' })
  await page.getByText(/does not answer/).waitFor({ state: 'detached' })
})
