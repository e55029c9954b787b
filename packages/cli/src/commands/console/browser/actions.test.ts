import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { karpenterKinds, type KubeObject, kinds } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import type { Browser, Page } from 'playwright-core'
import { snapshot } from '../../../testing/snapshot.test-support.ts'
import { holdPods, ownedPod, readersKubeconfig } from '../../../testing/refusing.test-support.ts'
import { type ServedApi, serveApi } from '../../../testing/served-api.test-support.ts'
import { launchChromium, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

/** A cluster as the Go Karpenter leaves it: its objects, and no Tenon. */
async function aCluster(
  t: TestContext,
  objects: readonly KubeObject[] = snapshot.objects,
): Promise<ServedApi & { readonly catalogue: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-actions-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const api = await serveApi(t, folder, objects)
  const catalogue = join(folder, 'catalogue.jsonl')
  await writeSnapshot(catalogue, snapshot)
  return { ...api, catalogue }
}

const acting = { drainTimeout: 1000 }

/** Asks for an action, and agrees to it. @returns its command. */
async function agree(page: Page, button: string): Promise<string> {
  await page.getByRole('button', { name: `${button}…` }).click()
  const command = (await page.getByRole('dialog').last().locator('pre.plain').textContent()) ?? ''
  await page.getByRole('button', { name: 'Run it' }).click()
  return command
}

function writesOf({ requests }: ServedApi): readonly string[] {
  return requests.filter((each) => !each.startsWith('GET '))
}

test('CON-20 CON-21 of a cluster that only Go Karpenter runs the page shows what there is, says why the rest is empty, and only reads', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const api = await aCluster(t)
  const { catalogue, kubeconfig } = api
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig, catalogue }))
  await visit.settled()
  await visit.page.waitForFunction(
    () => document.querySelector('[data-test=price]')?.textContent === '0.0500 ?1',
  )
  for (const path of ['/map?as=table', '/pods', '/pools', '/cost', '/decisions']) await visit.goTo(path)
  assert.match(await visit.text('main'), /no Tenon leads this cluster/)
  assert.match(await visit.text('footer'), /Not shown: .*journal/)
  await visit.goTo('/map?as=table&node=claim%2Fweb-1')
  assert.equal(await visit.page.getByRole('button', { name: /Cordon|Drain|Delete/ }).count(), 0)
  const asked = await visit.page.evaluate(async () => {
    const body = JSON.stringify({ request: { kind: 'cordon', node: 'n1' } })
    const { status } = await fetch('/api/actions', { method: 'POST', body })
    return status
  })
  assert.equal(asked, 405)
  assert.deepEqual(writesOf(api), [])
  assert.deepEqual(
    visit.faults.filter((each) => !each.includes('405')),
    [],
  )
})

test('CON-21 with --allow-actions an action shows its command, asks, and does just that', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const api = await aCluster(t)
  const { catalogue, kubeconfig, local } = api
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig, catalogue }, acting))
  const { page } = visit
  await visit.goTo('/map?as=table&node=claim%2Fweb-1')
  await page.getByRole('button', { name: 'Cordon…' }).click()
  const command = `kubectl cordon n1 --kubeconfig ${kubeconfig}`
  await page.getByText(command, { exact: true }).waitFor()
  assert.deepEqual(writesOf(api), [])
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cordon…' }).click()
  await page.getByRole('button', { name: 'Run it' }).click()
  await page.getByText('node/n1 cordoned').waitFor()
  assert.deepEqual(writesOf(api), ['PATCH /api/v1/nodes/n1'])
  assert.equal(local.get(kinds.node, undefined, 'n1')?.spec?.unschedulable, true)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Uncordon…' }).waitFor()
  assert.match(await visit.text('dialog'), /cordoned/)
  const changed = await page.evaluate(async () => {
    const agreed = 'kubectl uncordon n1'
    const body = JSON.stringify({ request: { kind: 'drain', node: 'n1' }, agreed })
    const answer = await fetch('/api/actions', { method: 'POST', body })
    return answer.status
  })
  assert.equal(changed, 409, 'what was agreed to is what is done')
  assert.equal(writesOf(api).length, 1)
})

test('CON-21 what the rights do not allow is said in the words of the server, and changes nothing', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const api = await aCluster(t)
  const { catalogue, local } = api
  const kubeconfig = await readersKubeconfig(api)
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig, catalogue }, acting))
  const { page } = visit
  const failure = page.getByRole('alert')
  const refused = async (button: string, verb: string, what: string) => {
    await agree(page, button)
    await failure.waitFor()
    const says = `Error from server (Forbidden): ${what} is forbidden: User "reader" cannot ${verb}`
    assert.ok((await failure.textContent())?.startsWith(says), await failure.innerText())
    await page.keyboard.press('Escape')
  }
  await visit.goTo('/map?as=table&node=claim%2Fweb-1')
  await refused('Cordon', 'patch', 'nodes "n1"')
  await refused('Drain', 'patch', 'nodes "n1"')
  await refused('Delete NodeClaim', 'delete', 'nodeclaims.karpenter.sh "web-1"')
  await visit.screenshot('action-refused')
  await visit.goTo('/pools')
  await refused('Pause', 'patch', 'nodepools.karpenter.sh "web"')
  await visit.goTo('/what-if?nodepool=web')
  const area = page.getByRole('textbox', { name: /^Manifests/ })
  await area.fill((await area.inputValue()).replace('spec:', 'spec:\n  weight: 7'))
  await refused('Apply', 'patch', 'nodepools.karpenter.sh "web"')
  assert.deepEqual(
    local.list(karpenterKinds.nodePool).map(({ spec }) => spec.weight),
    [undefined],
  )
})

test('CON-21 a drain that a PodDisruptionBudget refuses names it and the pods', { skip }, async (t) => {
  assert.ok(browser)
  const objects = snapshot.objects.filter(({ kind }) => kind !== 'Pod')
  const api = await aCluster(t, [...objects, ownedPod('web-a', 'n1'), ownedPod('web-b', 'n1')])
  const { catalogue, kubeconfig, local } = api
  holdPods(local)
  const visit = await Visit.open(browser, await servedPage(t, { kubeconfig, catalogue }, acting))
  const { page } = visit
  await visit.goTo('/map?as=table&node=claim%2Fweb-1')
  const flags = '--ignore-daemonsets --delete-emptydir-data --timeout=1s'
  assert.equal(await agree(page, 'Drain'), `kubectl drain n1 ${flags} --kubeconfig ${kubeconfig}`)
  await page.getByRole('alert').waitFor()
  const told = (await page.getByRole('alert').textContent()) ?? ''
  assert.match(told, /node\/n1 cordoned, but not drained within 1 s/)
  assert.match(told, /pod shop\/web-b may not be evicted now: The disruption budget web needs 2 healthy pods/)
  assert.equal(local.list(kinds.pod).length, 2)
})

interface Try {
  readonly method?: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** Status of a request as somebody on the same host could make it. */
function statusOf(origin: string, { headers, method = 'GET', path }: Try): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}${path}`, { method, headers }, (answer) => {
      resolve(answer.statusCode ?? 0)
      answer.destroy()
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('CON-12 on its socket the page answers nobody but the browser that came by the link', {
  skip,
}, async (t) => {
  assert.ok(browser)
  const { catalogue, kubeconfig } = await aCluster(t)
  const link = await servedPage(t, { kubeconfig, catalogue })
  const visit = await Visit.open(browser, link)
  const [cookie] = await visit.page.context().cookies()
  assert.ok(cookie?.httpOnly === true && cookie.sameSite === 'Strict')
  assert.equal(await visit.page.evaluate(() => document.cookie), '')
  assert.equal(await visit.page.evaluate(() => location.search), '')
  const known = { cookie: `${cookie.name}=${cookie.value}` }
  const { origin, search } = new URL(link)
  const tries: readonly (Try & { readonly status: number })[] = [
    { path: '/api/cost', headers: known, status: 200 },
    { path: '/', headers: {}, status: 401 },
    { path: '/api/stream', headers: {}, status: 401 },
    { path: '/app.js', headers: {}, status: 401 },
    { path: `/${search}`, headers: {}, status: 401 },
    { path: '/api/stream', headers: { ...known, origin: 'http://evil.example' }, status: 403 },
    { path: '/api/cost', headers: { ...known, host: 'evil.example' }, status: 403 },
    {
      path: '/api/cost',
      headers: { ...known, host: `rebound.example:${new URL(origin).port}` },
      status: 403,
    },
    { path: '/api/actions', method: 'POST', headers: known, status: 403 },
    { path: '/api/cost', method: 'DELETE', headers: { ...known, origin }, status: 405 },
    { path: '/../../../../etc/passwd', headers: known, status: 200 },
    { path: '/..%2f..%2fetc%2fpasswd.txt', headers: known, status: 404 },
  ]
  for (const { status, ...each } of tries)
    assert.equal(await statusOf(origin, each), status, JSON.stringify(each))
})
