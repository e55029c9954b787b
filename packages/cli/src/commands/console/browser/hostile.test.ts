import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { KubeObject, Pod } from '@tenon/api'
import { type Snapshot, writeSnapshot } from '@tenon/ask'
import type { Browser } from 'playwright-core'
import { aPod, snapshot } from '../../../testing/snapshot.test-support.ts'
import { launchChromium, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

const hostile = '<img src=x onerror="globalThis.attacked=1"><script>globalThis.attacked=2</script>'
let browser: Browser | undefined
let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-hostile-'))
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

/** A snapshot in which everything that somebody may name is HTML. */
async function hostileSnapshot(): Promise<string> {
  const file = join(folder, 'hostile.jsonl')
  const waits: Pod = {
    ...aPod(hostile, undefined, { labels: { app: hostile } }),
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: hostile }],
    },
  }
  await writeSnapshot(file, {
    ...snapshot,
    objects: [
      ...snapshot.objects.map((object) =>
        object.metadata.name === 'strange'
          ? { ...object, metadata: { ...object.metadata, name: hostile, labels: { team: hostile } } }
          : object,
      ),
      waits,
    ],
    journal: [
      {
        id: '1',
        at: '2026-11-26T11:59:00Z',
        kind: 'failure',
        reason: 'LaunchFailed',
        message: hostile,
        nodeClaims: ['web-1'],
        nodes: [hostile],
      },
    ],
    nodeDecisions: snapshot.nodeDecisions.map((each) => ({ ...each, message: hostile })),
  })
  return file
}

test('CON-15 names, labels and messages that are HTML are text on every view', { skip }, async (t) => {
  assert.ok(browser)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: await hostileSnapshot() }))
  for (const path of ['/', '/map?as=table', '/pods', '/pools', '/decisions', '/decisions?entry=1', '/cost']) {
    await visit.goTo(path)
    assert.equal(await visit.page.locator('img').count(), 0, path)
    assert.equal(await visit.page.evaluate('globalThis.attacked'), undefined, path)
  }
  await visit.goTo('/map?as=table')
  assert.ok(await visit.page.getByTitle(hostile).first().isVisible())
  await visit.goTo('/decisions')
  assert.match(await visit.text('.journal'), /<img src=x onerror/)
  assert.deepEqual(visit.faults, [])
})

test('CON-22 what a script from elsewhere would need is refused by the policy of the page', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: await hostileSnapshot() }))
  await visit.settled()
  const tries = await visit.page.evaluate(async () => {
    const refused: string[] = []
    document.addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
      refused.push(violatedDirective),
    )
    const inline = document.createElement('script')
    inline.textContent = 'globalThis.attacked = 3'
    document.body.append(inline)
    const foreign = document.createElement('script')
    foreign.src = 'http://127.0.0.1:1/x.js'
    document.body.append(foreign)
    const image = document.createElement('img')
    image.src = 'http://127.0.0.1:1/x.png'
    document.body.append(image)
    await fetch('http://127.0.0.1:1/').catch(() => undefined)
    await new Promise((done) => setTimeout(done, 200))
    return { refused: refused.toSorted(), attacked: (globalThis as { attacked?: number }).attacked }
  })
  assert.deepEqual(tries, {
    refused: ['connect-src', 'img-src', 'script-src-elem', 'script-src-elem'],
    attacked: undefined,
  })
})

const [longName, endless] = ['general-purpose-'.repeat(15) + '7xk2p', 'w'.repeat(253)]
const farTime = '2031-01-01T00:00:00Z'

/** Names of every length and script; objects that lack what others have; and a clock that is ahead by years. */
function strangeObjects(): readonly KubeObject[] {
  const names = [longName, endless, 'שלום-מחשב-12', 'عقدة\u202egpj.exe', '👩‍👩‍👧‍👦-🇨🇭-節点', '__proto__']
  const [claim, pool] = ['NodeClaim', 'NodePool'].map((kind) =>
    snapshot.objects.find((object) => object.kind === kind),
  )
  return [
    ...names.flatMap((name): readonly KubeObject[] => [
      { apiVersion: 'v1', kind: 'Node', metadata: { name, creationTimestamp: farTime } },
      aPod(name, name, { namespace: name, labels: { app: name } }),
      {
        ...aPod(`${name}-waits`, undefined, { namespace: name, creationTimestamp: farTime }),
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: name }],
        },
      } as Pod,
    ]),
    ...(claim === undefined
      ? []
      : [
          { ...claim, metadata: { name: `${longName}-claim`, labels: { 'karpenter.sh/nodepool': endless } } },
        ]),
    ...(pool === undefined ? [] : [pool, { ...pool, metadata: { ...pool.metadata, name: endless } }]),
    { ...aPod('asks-for-nothing', undefined), spec: { containers: [{ name: 'c' }] } } as Pod,
  ]
}

test('of many NodePools some are shown, and found by name', { skip }, async (t) => {
  assert.ok(browser)
  const pool = snapshot.objects.find(({ kind }) => kind === 'NodePool')
  assert.ok(pool)
  const pools = Array.from({ length: 60 }, (_, at) => ({
    ...pool,
    metadata: { ...pool.metadata, name: `team-${at}`, uid: `uid-${at}` },
  }))
  const file = join(folder, 'many.jsonl')
  await writeSnapshot(file, { ...snapshot, objects: pools })
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  await visit.goTo('/pools')
  const titles = visit.page.locator('section h2')
  assert.equal(await titles.count(), 50)
  assert.match(await visit.text('main'), /60 of 60 NodePools.*The first 50 are shown/s)
  const filter = visit.page.getByLabel('Filter').first()
  await filter.fill('Team-5')
  await visit.page.getByText('11 of 60 NodePools').waitFor()
  assert.deepEqual((await titles.allTextContents()).slice(0, 2), ['team-5', 'team-50'])
  await filter.fill('nobody')
  await visit.page.getByText('No NodePool matches the filter.').waitFor()
  assert.deepEqual(visit.faults, [])
})

async function snapshotOf(name: string, parts: Partial<Snapshot>): Promise<string> {
  const file = join(folder, `${name}.jsonl`)
  await writeSnapshot(file, { ...snapshot, nodeDecisions: [], ...parts })
  return file
}

test('CON-13 CON-15 PGE-11 whatever objects are called and lack, every view shows them and fits', {
  skip,
}, async (t) => {
  const file = await snapshotOf('strange', {
    objects: strangeObjects(),
    journal: [
      {
        id: '1',
        at: farTime,
        kind: 'failure',
        reason: 'LaunchFailed',
        message: endless,
        nodePool: endless,
        nodeClaims: [longName],
        nodes: [endless],
      },
    ],
  })
  assert.ok(browser)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  await visit.fitsOnEveryView('strange')
})

test('CON-13 PGE-11 a cluster without any object is shown as such on every view', { skip }, async (t) => {
  const file = await snapshotOf('nothing', { objects: [], catalogues: [], journal: [] })
  assert.ok(browser)
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  await visit.fitsOnEveryView('nothing')
})

test('an answer that takes longer than it is until the next question is waited for', { skip }, async (t) => {
  assert.ok(browser)
  const file = await snapshotOf('slow', {})
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  const { page } = visit
  await visit.settled()
  const [asked, held] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  await page.route('**/api/pending', async (route) => {
    asked.resolve(undefined)
    await held.promise
    await route.continue()
  })
  await page.clock.install()
  await page.locator('.top').getByRole('link', { name: 'Pods pending' }).click()
  await page.getByText('Waiting for the reasons of pods that wait').waitFor()
  await asked.promise
  await page.clock.runFor(60_000)
  assert.equal(visit.requests.filter((each) => each === 'GET /api/pending').length, 1)
  held.resolve(undefined)
  await page.getByText(/^As of/).waitFor()
  assert.deepEqual(visit.faults, [])
})
