/** What was spent and decided, and what would come of more replicas (page.md 2). */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { aClaimedNode, aPending, aPool, aRunning, aSnapshot, aType } from '@tenon/ask/test-clusters'
import type { Browser } from 'playwright-core'
import { launchChromium, schemes, skip, Visit, widths } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'
import { tenDays } from './ten-days.test-support.ts'

let browser: Browser | undefined
let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-spend-'))
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

const hourMs = 3_600_000

async function served(t: Parameters<typeof servedPage>[0]): Promise<string> {
  const [pool, type] = [aPool('blue'), aType('small', 2)]
  const pods = ['a', 'b'].map((name) => {
    const pod = aPending(name, { cpu: '1500m' }, {}, 'web')
    // As a ReplicaSet of a Deployment labels them.
    const labels = { ...pod.metadata.labels, 'pod-template-hash': '7d9f' }
    return { ...pod, metadata: { ...pod.metadata, labels } }
  })
  const nodes = pods.flatMap((pod, at) => [...aClaimedNode(`n${at}`, pool, type), aRunning(pod, `n${at}`)])
  const snapshot = aSnapshot([pool, ...nodes], [type])
  const file = join(folder, 'cluster.jsonl')
  await writeSnapshot(file, { ...snapshot, journal: tenDays(Date.now()) })
  return await servedPage(t, { snapshot: file })
}

test('PGE-4, PGE-5, PGE-6 spend, decisions of a time and twice the replicas, on the page', {
  skip,
}, async (t) => {
  const visit = await Visit.open(browser as Browser, await served(t))
  const { page } = visit

  await t.test('PGE-4 sums, forecast, bars, changes that lead to decisions, and exports', async () => {
    await visit.goTo('/cost?stack=workload')
    const text = await visit.text('main')
    assert.match(text, /Since midnight/)
    assert.match(text, /EUR per hour, the mean of the last 7 days, for the \d+ h left/)
    assert.match(text, /Idle, which no pod requests: \d+\.\d\d EUR/)
    assert.match(text, /<img src=x/)
    for (const [kind, pattern] of [
      ['CSV', /^from,to,kind,workload,amount,currency\r\n.*shop\/deployment\/web/s],
      ['JSON', /"forecast": \{/],
    ] as const) {
      const waiting = page.waitForEvent('download')
      await page
        .getByRole('button', { name: `Export ${kind}` })
        .first()
        .click()
      const path = await (await waiting).path()
      assert.match(await readFile(path, 'utf8'), pattern)
    }
    await page.locator('.stack .mark').first().click()
    await visit.settled()
    assert.match(await visit.text('dialog'), /NodePool blue.*2\.0000/s)
  })

  await t.test(
    'PGE-5 a time chosen on the chart shows the decisions of it, folded, by workload',
    async () => {
      await visit.goTo('/decisions')
      const all = await page.locator('.folded .entry').count()
      assert.equal(all, 20)
      const rows = await page.locator('.folded .entry').allTextContents()
      assert.ok(rows.some((row) => /web, 12 pods.*1 node ready.*\+2\.0000 EUR per hour/s.test(row)))
      const chart = await page.locator('.u-over').boundingBox()
      assert.ok(chart)
      await page.mouse.move(chart.x + chart.width * 0.4, chart.y + 40)
      await page.mouse.down()
      await page.mouse.move(chart.x + chart.width * 0.6, chart.y + 60, { steps: 5 })
      await page.mouse.up()
      await page.waitForFunction((most) => document.querySelectorAll('.folded .entry').length < most, all)
      const { searchParams } = new URL(page.url())
      const days = (Number(searchParams.get('to')) - Number(searchParams.get('from'))) / (24 * hourMs)
      assert.ok(days > 1.5 && days < 2.5, `${days} days`)
      const shown = await page.locator('.folded .entry').count()
      assert.ok(shown >= 2 && shown <= 6, `${shown} rows`)
    },
  )

  await t.test('PGE-6 the slider of a Deployment shows what twice as many would need', async () => {
    await visit.goTo('/object?kind=Deployment&namespace=default&name=web')
    await page.getByRole('button', { name: 'Twice as many' }).click()
    await page.locator('.simulated').waitFor()
    assert.match(
      await visit.text('.command code'),
      /^tenon simulate --scale deployment\/default\/web=4 --snapshot /,
    )
    assert.match(await visit.text('.simulated'), /Nodes: 2 kept, 2 added/)
  })

  assert.deepEqual(visit.faults, [])
})

test('PGE-11 spend and decisions: nothing is cut off in any width, and axe finds nothing', {
  skip,
}, async (t) => {
  const visit = await Visit.open(browser as Browser, await served(t))
  const { page } = visit
  for (const path of [
    '/cost?stack=workload',
    '/decisions',
    '/object?kind=Deployment&namespace=default&name=web',
  ]) {
    await visit.goTo(path)
    for (const colorScheme of schemes)
      for (const width of widths) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        assert.equal(await visit.overflow(), 0, `${path} ${width}`)
        if (width === 2560) continue
        assert.deepEqual(await visit.violations(), [], `${path} ${colorScheme} ${width}`)
        await visit.screenshot(`spend${path.replaceAll(/\W+/g, '-')}-${colorScheme}-${width}`)
      }
  }
  assert.deepEqual(visit.faults, [])
})
