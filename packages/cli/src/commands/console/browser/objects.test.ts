/** Pages of single objects, and the search for them (page.md 2). */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { type KubeObject, kinds, type Node, type NodeClaim, type NodePool } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import type { Browser, Page } from 'playwright-core'
import { readersKubeconfig } from '../../../testing/refusing.test-support.ts'
import { crdType, type ServedApi, serveApi } from '../../../testing/served-api.test-support.ts'
import { aPod, snapshot } from '../../../testing/snapshot.test-support.ts'
import { launchChromium, schemes, skip, Visit, widths } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined
let folder = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-objects-'))
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

const classRef = { group: 'clouds.example', kind: 'ExampleNodeClass', name: 'default' }
const classType = {
  group: classRef.group,
  version: 'v1',
  kind: classRef.kind,
  plural: 'examplenodeclasses',
  namespaced: false,
}
const deploymentType = kinds.deployment
const replicaSetType = kinds.replicaSet
const template = {
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [
      { name: 'app', image: 'registry.k8s.io/pause', env: [{ name: 'PASSWORD', value: 'hunter2' }] },
    ],
  },
}

/** A pod of the Deployment web with what nobody should read on a page. */
function webPod(name: string, node: string | undefined): KubeObject {
  const pod = aPod(name, node, {
    uid: `uid-${name}`,
    labels: { app: 'web', 'pod-template-hash': '5d4' },
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': '{"spec":{"env":[{"value":"hunter2"}]}}',
      'example.com/dsn': 'postgres://web:hunter2@db/shop',
    },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4', uid: 'rs', controller: true },
    ],
    managedFields: [
      { manager: 'kubectl', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} },
    ],
  })
  const [container] = pod.spec.containers
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: [
        {
          ...container,
          name: 'app',
          args: ['--token=hunter2', '--password', 'hunter2', '--log-level=debug'],
          env: [{ name: 'PASSWORD', value: 'hunter2' }],
        },
      ],
    },
  } as KubeObject
}

/** The objects of a small shop, with a node class that a cloud would serve. */
async function aShop(t: TestContext): Promise<ServedApi> {
  const own = snapshot.objects.map((object): KubeObject => {
    if (object.kind === 'NodeClaim')
      return { ...object, spec: { ...(object as NodeClaim).spec, nodeClassRef: classRef } } as NodeClaim
    if (object.kind !== 'NodePool') return object
    const { spec } = object as NodePool
    return {
      ...object,
      spec: {
        ...spec,
        template: {
          spec: {
            ...spec.template.spec,
            nodeClassRef: classRef,
            taints: [{ key: 'team', value: 'web', effect: 'NoSchedule' }],
          },
        },
      },
    } as NodePool
  })
  const api = await serveApi(t, await mkdtemp(join(folder, 'shop-')), [
    ...own,
    webPod('web-5d4-a', 'n1'),
    webPod('web-5d4-b', undefined),
  ])
  const { local } = api
  const names = {
    group: classType.group,
    scope: 'Cluster',
    names: {
      kind: classType.kind,
      plural: classType.plural,
      singular: 'examplenodeclass',
      listKind: 'ExampleNodeClassList',
    },
  }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  local.create(crdType, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${classType.plural}.${classType.group}` },
    spec: { ...names, versions: [{ name: 'v1', served: true, storage: true, schema }] },
  } as never)
  local.create<KubeObject>(classType, {
    apiVersion: `${classType.group}/v1`,
    kind: classType.kind,
    metadata: { name: classRef.name },
    spec: { zone: 'z1', userData: 'token: hunter2' },
  } as never)
  local.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  const selector = { matchLabels: { app: 'web' } }
  local.create(deploymentType, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { replicas: 2, selector, template },
  })
  local.create(replicaSetType, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: 'web-5d4',
      namespace: 'shop',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd', controller: true },
      ],
    },
    spec: { replicas: 2, selector, template },
  } as never)
  local.create(kinds.event, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'n1.1', namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'n1', uid: 'n1' },
    type: 'Normal',
    reason: 'DisruptionBlocked',
    message: 'Pod shop/web-5d4-a of NodePool web cannot move',
    count: 3,
    lastTimestamp: '2026-11-26T12:00:00Z',
  } as never)
  return api
}

async function heading(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
}

test('PGE-7 from the class to the pods and back every relation is a link, and the browser goes back', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const api = await aShop(t)
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig: api.kubeconfig }))
  const { page } = visit
  await visit.goTo('/map?as=table')
  const main = page.locator('main')
  const titles = ['Map']
  const follow = async (link: string, to: string) => {
    await main.getByRole('link', { name: link, exact: true }).first().click()
    await heading(page, to)
    await visit.settled()
    titles.push(to)
  }
  await follow('n1', 'Node n1')
  assert.match(await visit.text('.chain'), /^NodePool web.*NodeClaim web-1.*Node this.*4 pods$/)
  assert.match(await visit.text('main'), /DisruptionBlocked.*NodePool web cannot move \(3 times\)/)
  assert.match(await visit.text('main'), /topology\.kubernetes\.io\/zone/)
  assert.match(await visit.text('main'), /Ready.*True/)
  await visit.screenshot('object-node')
  await follow('web-1', 'NodeClaim web-1')
  await follow('default', 'ExampleNodeClass default')
  assert.doesNotMatch(await visit.text('main'), /hunter2/)
  await follow('web', 'NodePool web')
  assert.match(await visit.text('.object-facts'), /Taintsteam=web:NoSchedule/)
  await visit.screenshot('object-pool')
  await follow('web-1', 'NodeClaim web-1')
  await follow('n1', 'Node n1')
  await follow('shop/web-5d4-a', 'Pod shop/web-5d4-a')
  const yaml = await visit.text('main pre')
  assert.match(yaml, /^apiVersion: v1\nkind: Pod\n/)
  assert.match(yaml, /--log-level=debug/)
  assert.match(yaml, /- name: PASSWORD\n *value: \(hidden\)/)
  assert.doesNotMatch(yaml, /hunter2|managedFields|last-applied/)
  await visit.screenshot('object-pod')
  await follow('shop/web-5d4', 'ReplicaSet shop/web-5d4')
  assert.match(await visit.text('main'), /Pods \(2\)/)
  await follow('shop/web', 'Deployment shop/web')
  assert.match(await visit.text('.object-facts'), /Replicas2/)
  await visit.screenshot('object-workload')
  await follow('shop/web-5d4-b', 'Pod shop/web-5d4-b')
  for (const title of titles.slice(0, -1).toReversed()) {
    await page.goBack()
    await heading(page, title)
  }
  await page.goForward()
  await heading(page, 'Node n1')
  await page.reload()
  await heading(page, 'Node n1')
  assert.deepEqual(visit.faults, [])
})

test('PGE-7 an object that is deleted while it is shown stays to be read, and is said to be gone', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const { kubeconfig, local } = await aShop(t)
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig }))
  const { page } = visit
  await visit.goTo('/object?kind=Node&name=strange')
  await page.getByText('Provider ID').waitFor()
  local.delete(kinds.node, undefined, 'strange')
  await page.getByText(/^Node strange is not there any more\. What follows was true before\.$/).waitFor()
  assert.match(await visit.text('.object-facts'), /x:\/\/strange/)
  await visit.screenshot('object-gone')
  assert.deepEqual(await visit.violations(), [])
  await visit.goTo('/object?kind=Pod&namespace=shop&name=nobody')
  await page.getByText('Pod shop/nobody is not there.').waitFor()
  await visit.goTo('/object?kind=Node')
  await page.getByText(/This address names no object/).waitFor()
  // What would name another path of the API server is no name.
  await visit.goTo('/object?kind=Pod&namespace=shop%2Fsecrets%2Fx%3F&name=a')
  await page.getByText(/is not there\.$/).waitFor()
  await visit.goTo('/object?kind=Secret&namespace=shop&name=a')
  await page.getByText(/is not shown in full: objects of kind Secret are not read/).waitFor()
  assert.deepEqual(visit.faults, [])
})

test('PGE-7 what may not be read is said to be so, in the words of the server, and the rest is shown', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const api = await aShop(t)
  const resources = ['nodes', 'nodeclaims', 'nodepools']
  const verbs = ['get', 'list', 'watch']
  const kubeconfig = await readersKubeconfig(api, { apiGroups: ['*'], resources, verbs })
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig }))
  const { page } = visit
  // What tenon explain says needs all lists, and is waited for by nobody here.
  const open = async (query: string) => await page.goto(`${visit.origin}/object?${query}`)
  await open('kind=Node&name=n1')
  await page.getByText(/Pods cannot be listed: the right is missing: list and watch pods/).waitFor()
  await page.getByText(/events cannot be listed: events is forbidden: User "reader" cannot list/).waitFor()
  await page.getByText('x://n1', { exact: true }).waitFor()
  assert.doesNotMatch(await visit.text('main'), /0 pods|Pods \(0\)|no pods/)
  await visit.screenshot('object-forbidden')
  await open('kind=Pod&namespace=shop&name=a')
  await page
    .getByText(
      /^Pod shop\/a is not shown in full: the right is missing: pods "a" is forbidden: User "reader" cannot get/,
    )
    .waitFor()
  await open('kind=NodeClaim&name=web-1')
  await page.locator('main').getByRole('link', { name: 'default', exact: true }).click()
  await page.getByText(/^ExampleNodeClass default is not shown in full: the right is missing/).waitFor()
  // What belongs to it is known without it.
  await page.locator('.chain').getByRole('link', { name: 'web', exact: true }).waitFor()
  // It asks for more rights than these.
  const others = visit.faults.filter((each) => !each.includes('502'))
  assert.deepEqual(others, [])
})

const hostile = '<img src=x onerror="globalThis.attacked=1">'
const endless = 'w'.repeat(253)

test('PGE-7 whatever objects are called, every name on every view leads to its page, which fits', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const names = [hostile, endless, '__proto__', 'constructor', 'עקדה\u202egpj.exe', 'a/b?c#d%2e&name=x']
  const [claim, pool, node] = ['NodeClaim', 'NodePool', 'Node'].map((kind) =>
    snapshot.objects.find((object) => object.kind === kind),
  )
  assert.ok(claim && pool && node)
  const labels = JSON.parse(`{"__proto__": "x", "${'k'.repeat(63)}": "${'v'.repeat(63)}"}`) as Record<
    string,
    string
  >
  const objects = names.flatMap((name): readonly KubeObject[] => [
    {
      ...node,
      metadata: { name, labels: { ...labels, 'karpenter.sh/nodepool': name } },
      spec: { providerID: name, taints: [{ key: name, value: name, effect: 'NoSchedule' }] },
      status: { conditions: [{ type: name, status: 'True', reason: endless, message: name }] },
    } as Node,
    {
      ...claim,
      metadata: { name: `${name}-claim`.slice(-253), labels: { 'karpenter.sh/nodepool': name } },
      status: { providerID: name, nodeName: name, conditions: [] },
    } as KubeObject,
    { ...pool, metadata: { name } },
    aPod(name, name, {
      namespace: name,
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid: name, controller: true }],
    }),
    aPod(`${name}-waits`.slice(-253), undefined, { namespace: name }),
  ])
  const file = join(folder, 'hostile.jsonl')
  await writeSnapshot(file, { ...snapshot, objects, nodeDecisions: [] })
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  const { page } = visit
  const linked = new Set<string>()
  for (const view of ['/', '/map?as=table', '/pods', '/pools', '/cost?by=owner']) {
    await visit.goTo(view)
    const links = page.locator('main a[href^="/object?"]')
    for (const each of await links.evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? '')))
      linked.add(each)
  }
  for (const kind of ['Node', 'NodePool', 'NodeClaim', 'Pod'])
    assert.ok([...linked].filter((each) => each.includes(`kind=${kind}&`)).length >= names.length, kind)
  for (const name of names)
    linked.add(`/object?${new URLSearchParams({ kind: 'StatefulSet', namespace: name, name }).toString()}`)
  const pages = [...linked].filter((each) => !each.includes('waits'))
  // Not all of each: a page takes a second.
  const paths = pages.filter((each, at) => each.includes('%3Cimg') || each.includes('wwww') || at % 3 === 0)
  for (const [turn, path] of paths.entries()) {
    await page.setViewportSize({ width: widths[turn % 2] ?? 360, height: 900 })
    await page.emulateMedia({ colorScheme: schemes[turn % 2] ?? 'light' })
    await visit.goTo(path)
    if (path.includes('kind=StatefulSet')) await page.getByText(/a snapshot has only what/).waitFor()
    else await page.getByRole('heading', { name: 'YAML' }).waitFor()
    if (/kind=(StatefulSet|Node&)/.test(path)) await page.locator('#object-pods a').first().waitFor()
    assert.equal(await page.locator('img').count(), 0, path)
    assert.equal(await page.evaluate('globalThis.attacked'), undefined, path)
    assert.ok((await visit.overflow()) <= 0, `${path} scrolls sideways`)
    assert.deepEqual(await visit.crowded(), [], path)
  }
  assert.deepEqual(visit.faults, [])
})

test('PGE-7 the page of each kind fits in light and dark at every width, and axe-core finds nothing', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const { kubeconfig } = await aShop(t)
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig }))
  const { page } = visit
  for (const query of [
    'kind=Node&name=n1',
    'kind=NodeClaim&name=web-1',
    'kind=NodePool&name=web',
    'kind=Pod&namespace=shop&name=web-5d4-b',
    'kind=Deployment&namespace=shop&name=web',
    `kind=${classRef.kind}&group=${classRef.group}&name=default`,
  ]) {
    await visit.goTo(`/object?${query}`)
    for (const each of await page.locator('details').all())
      await each.evaluate((element) => element.setAttribute('open', ''))
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme })
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        assert.ok((await visit.overflow()) <= 0, `${query} at ${width}`)
        assert.deepEqual(await visit.crowded(), [], query)
        if (query.startsWith('kind=Node&') || query.startsWith('kind=Pod'))
          await visit.screenshot(`object-${query.slice(5, 8)}-${colorScheme}-${width}`)
      }
      assert.deepEqual(await visit.violations(), [], `${query} ${colorScheme}`)
    }
  }
  assert.deepEqual(visit.faults, [])
})

const count = 5000

/** Ten pods on each node, of five hundred Deployments. */
function largeCluster(): readonly KubeObject[] {
  const [node, claim] = ['n1', 'web-1'].map((name) =>
    snapshot.objects.find(({ metadata }) => metadata.name === name),
  ) as [Node, NodeClaim]
  const fleet = Array.from({ length: count }, (_, at): readonly KubeObject[] => [
    {
      ...node,
      metadata: { ...node.metadata, name: `ip-10-0-${at}.internal` },
      spec: { providerID: `x://${at}` },
    } as Node,
    {
      ...claim,
      metadata: { ...claim.metadata, name: `web-${at}` },
      status: { ...claim.status, providerID: `x://${at}`, nodeName: `ip-10-0-${at}.internal` },
    } as NodeClaim,
    ...Array.from({ length: 10 }, (_pod, of) => {
      const owner = `app-${(at * 10 + of) % 500}`
      return aPod(`${owner}-5d4-${at}-${of}`, `ip-10-0-${at}.internal`, {
        labels: { 'pod-template-hash': '5d4' },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${owner}-5d4`, uid: owner, controller: true },
        ],
      })
    }),
  ])
  return [...snapshot.objects.filter(({ kind }) => kind === 'NodePool'), ...fleet.flat()]
}

test(`PGE-8 a part of a name finds objects of all kinds within 100 ms at ${count} nodes, by keyboard alone`, {
  skip,
}, async (t) => {
  assert.ok(browser)
  const file = join(folder, 'large.jsonl')
  await writeSnapshot(file, { ...snapshot, objects: largeCluster(), nodeDecisions: [] })
  const visit = await Visit.open(browser, await servedPage(t, { snapshot: file }))
  const { page } = visit
  await visit.settled()
  await page.keyboard.press('/')
  const box = page.getByRole('combobox', { name: /A part of a name/ })
  await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'combobox')
  await page.evaluate(() => {
    const seen = globalThis as { searchMs?: number[] }
    const times: number[] = []
    seen.searchMs = times
    let fromMs = 0
    document
      .querySelector('[role=combobox]')
      ?.addEventListener('input', () => (fromMs = performance.now()), { capture: true })
    new MutationObserver(() => {
      if (
        fromMs === 0 ||
        !/found$|No object/.test(document.querySelector('dialog [role=status]')?.textContent ?? '')
      )
        return
      times.push(performance.now() - fromMs)
      fromMs = 0
    }).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
    })
  })
  const searched = [
    ['ip-10-0-4999', 'Node ip-10-0-4999.internal'],
    ['web-4321', 'NodeClaim web-4321'],
    ['web', 'NodePool web'],
    ['app-499', 'Deployment shop/app-499'],
    ['shop/app-7-5d4-', 'Pod shop/app-7-5d4-0-7'],
    ['INTERNAL 77', 'Node ip-10-0-77.internal'],
    ['c', 'K c'],
  ] as const
  // Others use the host as well: the first try that nobody disturbs tells what a search takes.
  let medianMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 5 && medianMs >= 100; attempt++) {
    for (const [text, expected] of searched) {
      await box.fill('')
      await page.keyboard.type(text, { delay: 60 })
      await page.getByRole('option', { name: expected, exact: true }).waitFor()
    }
    const times = await page.evaluate(() => (globalThis as { searchMs?: number[] }).searchMs?.splice(0) ?? [])
    const sorted = times.toSorted((a, b) => a - b)
    const [median = Number.NaN, most = Number.NaN] = [0.5, 0.9].map(
      (part) => sorted[Math.floor(sorted.length * part)],
    )
    t.diagnostic(`${sorted.length} searches: median ${median.toFixed(0)} ms, p90 ${most.toFixed(0)} ms`)
    assert.ok(sorted.length > 20)
    medianMs = median
  }
  assert.ok(medianMs < 100, `${medianMs} ms`)
  await visit.screenshot('search-5000')
  assert.deepEqual(await visit.violations(), [])
  await page.setViewportSize({ width: 360, height: 700 })
  assert.ok((await visit.overflow()) <= 0)
  await visit.screenshot('search-360')
  await box.fill('nothing-is-called-so')
  await page.getByText('No object has that in its name.').waitFor()
  await box.fill('app-12-5d4-1')
  await page.getByRole('option').first().waitFor()
  await page.keyboard.press('ArrowDown')
  const chosen = await page.locator('[role=option][aria-selected=true]').textContent()
  await page.keyboard.press('Enter')
  await heading(page, chosen ?? '')
  assert.equal(await page.getByRole('dialog').count(), 0)
  await page.waitForFunction(() => document.activeElement?.id === 'main')
  // Enter does not have to wait for the answer.
  await page.keyboard.press('/')
  await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'combobox')
  await page.keyboard.type('ip-10-0-1234.internal')
  await page.keyboard.press('Enter')
  await heading(page, 'Node ip-10-0-1234.internal')
  assert.match(await visit.text('.chain'), /NodeClaim web-1234.*10 pods/)
  await page.keyboard.press('/')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  assert.equal(await page.getByRole('dialog').count(), 0)
  await page.goBack()
  await heading(page, chosen ?? '')
  // In a field it is a character.
  await visit.goTo('/map?as=table')
  await page.getByRole('searchbox', { name: 'Filter' }).press('/')
  assert.equal(await page.getByRole('dialog').count(), 0)
  assert.deepEqual(visit.faults, [])
})
