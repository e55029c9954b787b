/** The page in Chromium: how soon it is usable, and how long it is blocked while pods change. */
import { existsSync } from 'node:fs'
import { chromium, type CDPSession, type Page } from 'playwright-core'
import { firstClick } from './first-click.ts'
import { type Figure, heldTarget, part, type Stand } from './figure.ts'
import type { ServedProcess } from './served-process.ts'

const chromiumPath = process.env['TENON_CHROMIUM'] ?? '/usr/bin/chromium'
/** Milliseconds until the page is usable (console.md 3). */
const usableTarget = 1000
const pictureWithinMs = 120_000
const settleMs = 3000
const followMs = 211

/** Injected before the page's own scripts: records tasks over 50 ms, and times between frames. */
const probe = `
  globalThis.tenonTasks = []
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) tenonTasks.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  globalThis.tenonFrames = (lengthMs) => new Promise((resolve) => {
    const times = []
    const start = performance.now()
    let last = start
    const next = (now) => {
      times.push(now - last)
      last = now
      if (now - start < lengthMs) requestAnimationFrame(next)
      else resolve(times.slice(1))
    }
    requestAnimationFrame(next)
  })
`

/** @returns nothing without Chromium. */
export async function opened(server: ServedProcess, stand: Stand): Promise<readonly Figure[]> {
  if (!existsSync(chromiumPath)) return []
  const { answeredMs, pictureMs } = await firstClick(chromiumPath, await server.takeLink(), stand.clock)
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    // Chromium's sandbox does not work as root; the page is trusted.
    args: ['--no-sandbox', '--disable-gpu'],
  })
  try {
    // The first page of a browser starts processes.
    await (await browser.newPage()).goto('about:blank')
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    context.setDefaultTimeout(pictureWithinMs)
    await context.addInitScript({ content: probe })
    const page = await context.newPage()
    return [
      { name: 'page usable ms', value: answeredMs, target: usableTarget },
      { name: 'page picture ms', value: pictureMs },
      ...(await used(page, await server.takeLink(), stand)),
    ]
  } finally {
    await browser.close()
  }
}

async function used(page: Page, link: string, { churn, clock, seconds }: Stand): Promise<readonly Figure[]> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  await page.goto(link, { waitUntil: 'commit' })
  await page.locator('[data-test=price]').waitFor()
  const fillTasks = await longTasks(page)
  const figures: Figure[] = [{ name: 'page held while filling ms', value: Math.max(0, ...fillTasks) }]
  for (const view of ['Overview', 'Map', 'Decisions', 'Cost']) {
    const tab = page.locator('nav').getByRole('link', { name: view, exact: true })
    const clickMs = clock.monotonic()
    await tab.click()
    await page.getByRole('heading', { level: 1, name: view }).waitFor()
    figures.push({ name: `page ${view} opens ms`, value: clock.monotonic() - clickMs })
    await clock.sleep(settleMs)
    await longTasks(page)
    const changed = churn()
    await clock.sleep(1000)
    const [before, cpu] = [clock.monotonic(), await taskSeconds(session)]
    const frames = await frameTimes(page, seconds * 1000)
    const share = (100_000 * ((await taskSeconds(session)) - cpu)) / (clock.monotonic() - before)
    await changed
    figures.push(
      { name: `page ${view} frame p50 ms`, value: part(frames, 0.5) },
      { name: `page ${view} frame p99 ms`, value: part(frames, 0.99) },
      {
        name: `page ${view} held ms`,
        value: Math.max(0, ...(await longTasks(page))),
        target: heldTarget,
      },
      { name: `page ${view} core %`, value: share },
    )
  }
  await clock.sleep(followMs)
  await session.send('HeapProfiler.collectGarbage')
  return [...figures, { name: 'page heap MiB', value: (await metric(session, 'JSHeapUsedSize')) / 2 ** 20 }]
}

/** Times between frames, in milliseconds. */
async function frameTimes(page: Page, forMs: number): Promise<readonly number[]> {
  return await page.evaluate<readonly number[]>(`tenonFrames(${forMs})`)
}

/** Durations of all tasks over 50 ms since the last call, in milliseconds. */
async function longTasks(page: Page): Promise<readonly number[]> {
  return await page.evaluate<readonly number[]>('tenonTasks.splice(0)')
}

async function taskSeconds(session: CDPSession): Promise<number> {
  return await metric(session, 'TaskDuration')
}

async function metric(session: CDPSession, wanted: string): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
}
