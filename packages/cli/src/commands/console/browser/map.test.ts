import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import type { KubeObject, Node, NodeClaim } from '@tenon/api'
import type { Browser, Page } from 'playwright-core'
import { aPod, snapshot } from '../../../testing/snapshot.test-support.ts'
import { launchChromium, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

const count = 5000
let browser: Browser | undefined
let file = ''

before(async () => {
  if (skip !== false) return
  browser = await launchChromium()
  file = join(await mkdtemp(join(tmpdir(), 'tenon-map-')), 'large.jsonl')
  await writeSnapshot(file, { ...snapshot, objects: largeFleet(), nodeDecisions: [] })
})

after(async () => {
  await browser?.close()
  if (file !== '') await rm(join(file, '..'), { recursive: true, force: true })
})

/** Nodes of three sizes in three zones, each with two pods. */
function largeFleet(): readonly KubeObject[] {
  const [node, claim] = ['n1', 'web-1'].map((name) =>
    snapshot.objects.find(({ metadata }) => metadata.name === name),
  ) as [Node, NodeClaim]
  const fleet = Array.from({ length: count }, (_, at): readonly KubeObject[] => {
    const labels = { ...node.metadata.labels, 'topology.kubernetes.io/zone': `z${at % 3}` }
    const cpu = String(2 * 4 ** (at % 3))
    return [
      {
        ...node,
        metadata: { ...node.metadata, name: `n${at}`, labels },
        spec: { providerID: `x://${at}` },
        status: { ...node.status, allocatable: { cpu, memory: '16Gi', pods: '110' } },
      } as Node,
      {
        ...claim,
        metadata: { ...claim.metadata, name: `web-${at}`, labels },
        status: { ...claim.status, providerID: `x://${at}`, nodeName: `n${at}` },
      } as NodeClaim,
      aPod(`a${at}`, `n${at}`),
      aPod(`b${at}`, `n${at}`),
    ]
  })
  return [...snapshot.objects.filter(({ kind }) => kind === 'NodePool'), ...fleet.flat()]
}

/** Times between frames, in milliseconds and in order, while somebody drags the map to and fro. */
async function dragged(page: Page): Promise<readonly number[]> {
  const box = await page.getByRole('application').boundingBox()
  assert.ok(box)
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.evaluate(() => {
    const held = globalThis as { seenFrames?: number[]; isOver?: boolean }
    const frames: number[] = []
    held.seenFrames = frames
    held.isOver = false
    let last = performance.now()
    const next = (now: number) => {
      frames.push(now - last)
      last = now
      if (held.isOver !== true) requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })
  for (let step = 0; step < 90; step++)
    await page.mouse.move(x + 200 * Math.sin(step / 8), y + 120 * Math.cos(step / 8))
  await page.mouse.up()
  const frames = await page.evaluate(() => {
    const held = globalThis as { seenFrames?: number[]; isOver?: boolean }
    held.isOver = true
    return held.seenFrames?.slice(2) ?? []
  })
  return frames.toSorted((a, b) => a - b)
}

const mostTries = 5
const frameMs = 17

/** Others use the host as well: the first try that nobody disturbs tells what the page takes. */
async function smoothest(page: Page, tell: (text: string) => void): Promise<number> {
  const medians: number[] = []
  for (let attempt = 0; attempt < mostTries && !medians.some((each) => each < frameMs); attempt++) {
    const frames = await dragged(page)
    assert.ok(frames.length > 30)
    const [median, most, longest] = [0.5, 0.9, 0.999].map(
      (part) => frames[Math.floor(frames.length * part)]?.toFixed(1) ?? '',
    )
    tell(`${frames.length} frames while panning: median ${median} ms, p90 ${most} ms, longest ${longest} ms`)
    medians.push(Number(median))
  }
  return Math.min(...medians)
}

test(`CON-14 the map with ${count} nodes pans at 60 frames a second, and the table lists the same`, {
  skip,
}, async (t) => {
  assert.ok(browser)
  const startMs = performance.now()
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  await visit.settled()
  t.diagnostic(
    `the first picture of ${count} nodes is shown after ${Math.round(performance.now() - startMs)} ms`,
  )
  await visit.goTo('/map')
  await visit.page.getByRole('application', { name: `Map of ${count} nodes` }).waitFor()
  for (const nearer of [0, 6]) {
    for (let turn = 0; turn < nearer; turn++) await visit.page.mouse.wheel(0, -200)
    const medianMs = await smoothest(visit.page, (text) => t.diagnostic(`${nearer} turns nearer: ${text}`))
    assert.ok(medianMs < frameMs, `median ${medianMs} ms`)
  }
  await visit.screenshot('map-5000')
  await visit.goTo('/map?as=table')
  assert.match(await visit.text('.controls'), new RegExp(`${count} nodes`))
  await visit.page.getByText(`100 of ${count} are shown`).waitFor()
  await visit.page.getByRole('button', { name: 'Show 100 more' }).click()
  await visit.page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 200)
  for (const name of ['n0', 'n2500', `n${count - 1}`]) {
    await visit.page.getByRole('searchbox', { name: 'Filter' }).fill(name)
    await visit.page.getByRole('table', { name: 'Nodes' }).getByTitle(name, { exact: true }).waitFor()
  }
  assert.deepEqual(visit.faults, [])
})

test(`PGE-11 of ${count} nodes every view fits at every width, and axe-core finds nothing`, {
  skip,
}, async (t) => {
  assert.ok(browser)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  await visit.fitsOnEveryView('large')
})
