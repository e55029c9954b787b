/** The page on `tenon up`, while things happen there (console.md 4). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { Pod } from '@tenon/api'
import type { Browser } from 'playwright-core'
import {
  eventually,
  kubectlOut,
  objectsOf,
  runShell,
  startTenon,
  temporaryDirectory,
} from '../../../testing/tenon-process.test-support.ts'
import { launchChromium, schemes, skip, views, Visit, widths } from './browser.test-support.ts'
import { cuttable } from './cuttable.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

/** Its pods ask for what no NodePool sells. */
const stuck = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: stuck
  namespace: default
spec:
  replicas: 2
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec:
      nodeSelector: {karpenter.sh/capacity-type: spot}
      containers:
        - name: app
          image: registry.k8s.io/pause
          resources: {requests: {cpu: 100m, memory: 64Mi}}
`

interface Story {
  readonly cwd: string
  readonly visit: Visit
  /** The link for another browser. */
  readonly nextLink: () => string
  /** Runs tenon on the cluster. */
  readonly tenon: (line: string) => Promise<string>
}

async function aStory(t: TestContext): Promise<Story> {
  assert.ok(browser)
  const cwd = await temporaryDirectory(t)
  const up = startTenon(t, cwd, ['up', '--port', '0', '--api-port', '0', '--boot-delay', '1s'])
  // For a busy host; alone it takes some two seconds.
  const link = await eventually(
    () => /^console +(http:\S+)/m.exec(up.out())?.[1],
    () => `tenon up prints a link: ${up.out()}${up.err()}`,
  )
  const tenon = async (line: string) => {
    const { code, err, out } = await runShell(cwd, `export KUBECONFIG=.tenon/kubeconfig; ${line}`)
    if (code !== 0) throw new Error(`${line}: ${err}`)
    return out
  }
  const nextLink = () => [...up.out().matchAll(/^console +(http:\S+)/gm)].at(-1)?.[1] ?? ''
  return { cwd, visit: await Visit.open(browser, link), tenon, nextLink }
}

test('the page on a running cluster', { skip }, async (t) => {
  const { cwd, nextLink, tenon, visit } = await aStory(t)
  const { page } = visit

  await t.test('CON-11 nodes appear and pods get to them; the price is that of tenon cost', async () => {
    await page.waitForFunction(
      () =>
        /Nothing is launched or removed/.test(document.body.textContent ?? '') &&
        /20 in all, 20 with a node, 20 running/.test(document.body.textContent ?? ''),
      undefined,
      { timeout: 60_000 },
    )
    const { total } = JSON.parse(await tenon('tenon cost -o json')) as { total: { perHour: number } }
    await page.waitForFunction(
      (price) => document.querySelector('[data-test=price]')?.textContent === price,
      total.perHour.toFixed(4),
    )
    await visit.goTo('/cost')
    assert.equal(await visit.text('[data-test=cost]'), total.perHour.toFixed(4))
  })

  await t.test(
    "CON-16 a pending pod's nearest miss is that of tenon explain, and its patch makes it run",
    async () => {
      await kubectlOut(cwd, ['apply', '-f', '-'], stuck)
      const pod = await eventually(
        async () =>
          (await objectsOf<Pod>(cwd, 'pods')).find(({ metadata }) => metadata.name.startsWith('stuck-')),
        () => 'pods of the Deployment come',
      )
      await page.locator('.top').getByRole('link', { name: 'Pods pending' }).click()
      await page.locator('.misses li').first().waitFor({ timeout: 30_000 })
      const { pending } = JSON.parse(
        await tenon(`tenon explain pod/${pod.metadata.name} -n default -o json`),
      ) as { pending: { misses: readonly { change: { words: string } }[] } }
      assert.equal(await visit.text('.misses li strong'), pending.misses[0]?.change.words)
      await visit.screenshot('stuck-pods')
      assert.deepEqual(await visit.violations(), [])
      await page.getByRole('button', { name: 'Copy patch' }).first().click()
      await page.getByText('Copied').first().waitFor()
      const command = await page.evaluate(async () => await navigator.clipboard.readText())
      await tenon(command)
      await page.getByText('No pod waits for a node.').waitFor({ timeout: 60_000 })
      const running = await eventually(
        async () => {
          const pods = await objectsOf<Pod>(cwd, 'pods')
          const own = pods.filter(
            ({ metadata, status }) => metadata.name.startsWith('stuck-') && status?.phase === 'Running',
          )
          return own.length === 2 ? own : undefined
        },
        () => 'the pods run',
      )
      assert.equal(running.length, 2)
    },
  )

  await t.test('CON-17 what if shows what tenon simulate prints, and marks line and column', async () => {
    await visit.goTo('/what-if?nodepool=standard')
    const area = page.getByRole('textbox', { name: /^Manifests/ })
    const manifest = await area.inputValue()
    // Its nodes are of no type that is left.
    const changed = manifest
      .replace('consolidateAfter: 30s', 'consolidateAfter: 10m')
      .replace(/- standard\.medium\n/, '- standard.small\n')
      .replaceAll(/\n *- standard\.(large|extra-large|huge)/g, '')
    assert.notEqual(changed, manifest)
    await area.fill(changed)
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByLabel('What tenon simulate prints').waitFor({ timeout: 30_000 })
    await writeFile(join(cwd, 'changed.yaml'), changed)
    const answers = [await visit.text('main pre'), await tenon('tenon simulate -f changed.yaml')]
    const [shown, printed] = answers.map((text) => text.replace(/^Facts of .*\n/, ''))
    assert.equal(shown, printed)
    assert.doesNotMatch(shown ?? '', /Nothing changes/)
    // Its pods run already: they move, and none of them is one more that runs.
    const { podsThatMove } = JSON.parse(await tenon('tenon simulate -f changed.yaml -o json')) as {
      podsThatMove: readonly string[]
    }
    assert.ok(podsThatMove.length > 0)
    assert.match(
      await visit.text('.figures'),
      new RegExp(`move to other nodes${podsThatMove.length}Pending and new pods that would run0`),
    )
    await visit.screenshot('what-if-simulated')
    const lines = changed.split('\n')
    const line = lines.findIndex((each) => each.includes('consolidateAfter:')) + 1
    const column = (lines[line - 1] ?? '').indexOf('10m') + 1
    await area.fill(changed.replace('consolidateAfter: 10m', 'consolidateAfter: soon'))
    const problem = page.locator('.yaml-problems .error').first()
    await problem.waitFor()
    assert.match((await problem.textContent()) ?? '', new RegExp(`^${line}:${column} error: `))
    assert.ok(await page.getByRole('button', { name: 'Simulate' }).isDisabled())
  })

  await t.test('CON-18 a decision opens to before and after, and why each other node stays', async () => {
    await visit.goTo('/decisions?kind=launch')
    await page.locator('.journal button').first().click()
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    const text = (await dialog.textContent()) ?? ''
    const [, were = '', are = ''] = /Before: (\d+) nodes?,.*After: (\d+) nodes?,/.exec(text) ?? []
    assert.ok(Number(are) > Number(were), text)
    assert.match(text, /Other nodes, and why they stay/)
    assert.match(page.url(), /[?&]entry=/)
    await page.reload()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.getByRole('dialog').count(), 0)
  })

  for (const path of views)
    await t.test(`CON-13 CON-24 ${path} has its own address, fits, and axe-core finds nothing`, async () => {
      await visit.goTo(path)
      const heading = await visit.text('h1')
      await page.reload()
      await visit.settled()
      assert.equal(await visit.text('h1'), heading)
      for (const colorScheme of schemes) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        for (const width of widths) {
          await page.setViewportSize({ width, height: 900 })
          await visit.settled()
          assert.ok((await visit.overflow()) <= 0, `${path} at ${width}: scrolls sideways`)
          assert.deepEqual(await visit.crowded(), [], `${path} at ${width}`)
          const name = path === '/' ? 'overview' : path.slice(1).replace(/\W+/g, '-')
          await visit.screenshot(`${name}-${colorScheme}-${width}`)
        }
        await page.setViewportSize({ width: 1280, height: 900 })
        assert.deepEqual(await visit.violations(), [], `${path} ${colorScheme}`)
      }
      await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'no-preference' })
    })

  await t.test(
    'CON-13 by keyboard alone every view is reached, back leads back, and the map explains a node',
    async () => {
      await visit.goTo('/')
      await page.keyboard.press('Tab')
      assert.equal(await focused(), 'Skip to the view')
      for (const title of ['Map', 'Pods pending', 'Pools', 'Decisions', 'What if', 'Cost']) {
        await page.locator('nav').getByRole('link', { name: title, exact: true }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { level: 1, name: title }).waitFor()
        // Soon after it is shown.
        await page.waitForFunction(() => document.activeElement?.id === 'main')
        assert.match(await page.title(), new RegExp(`^${title}`))
      }
      await page.goBack()
      await page.getByRole('heading', { level: 1, name: 'What if' }).waitFor()
      await visit.goTo('/map')
      const canvas = page.getByRole('application')
      await canvas.focus()
      const outline = await canvas.evaluate((element) => getComputedStyle(element).outlineStyle)
      assert.notEqual(outline, 'none')
      await page.keyboard.press('n')
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog')
      await dialog.waitFor()
      await visit.settled()
      assert.deepEqual(await visit.violations(), [])
      await visit.screenshot('node-light-1280')
      await page.keyboard.press('Escape')
      assert.equal(await dialog.count(), 0)
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'CANVAS')
    },
  )

  await t.test('CON-24 printed, a view has no controls and is black on white', async () => {
    await visit.goTo('/cost')
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    assert.ok(await page.locator('nav').isHidden())
    const colors = await page.evaluate(() => {
      const { backgroundColor, color } = getComputedStyle(document.documentElement)
      return { backgroundColor, color }
    })
    assert.deepEqual(colors, { backgroundColor: 'rgb(255, 255, 255)', color: 'rgb(27, 31, 35)' })
    await visit.screenshot('cost-printed')
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' })
  })

  await t.test(
    'CON-23 a page that was cut off goes on where it was, without loss or repetition',
    async () => {
      assert.ok(browser)
      const line = await cuttable(t, nextLink())
      const other = await Visit.open(browser, line.link)
      await other.page.getByText(/22 in all, 22 with a node/).waitFor()
      const told: { readonly event: string; readonly id: number }[] = []
      const session = await other.page.context().newCDPSession(other.page)
      await session.send('Network.enable')
      session.on('Network.eventSourceMessageReceived', ({ eventId, eventName }) => {
        told.push({ event: eventName, id: Number(eventId.split('.').at(-1)) })
      })
      const restore = line.cut()
      await other.page.getByText(/The command does not answer/).waitFor()
      await kubectlOut(cwd, ['scale', 'deployment/stuck', '--replicas=3'])
      await restore()
      await other.page.getByText(/23 in all, 23 with a node/).waitFor({ timeout: 60_000 })
      assert.deepEqual(
        told.filter(({ event }) => event !== 'changes'),
        [],
      )
      for (const [at, { id }] of told.entries()) if (at > 0) assert.equal(id, (told[at - 1]?.id ?? 0) + 1)
      await other.page.context().close()
    },
  )

  await t.test('CON-11 nodes go when their pods do', async () => {
    await visit.goTo('/')
    // So that they go at once, and not one after the other.
    const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] }
    const patch = JSON.stringify({ spec: { disruption } })
    await kubectlOut(cwd, ['patch', 'nodepool', 'standard', '--type=merge', '-p', patch])
    await kubectlOut(cwd, ['delete', 'deployment', '--all'])
    await page.waitForFunction(
      () =>
        /\D0 in all/.test(document.body.textContent ?? '') &&
        document.querySelector('[data-test=price]')?.textContent === '0.0000',
      undefined,
      { timeout: 120_000 },
    )
  })

  assert.deepEqual(visit.faults, [], 'no error on the console, no request to another host')

  async function focused(): Promise<string> {
    return await page.evaluate(() => document.activeElement?.textContent ?? '')
  }
})
