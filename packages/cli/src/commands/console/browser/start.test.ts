/** An empty cluster of each simulated cloud: the page offers what comes next, and nothing that cannot work. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import type { NodePool, Pod } from '@tenon/api'
import type { Browser } from 'playwright-core'
import { runCommand } from '../../../testing/command.test-support.ts'
import {
  eventually,
  kubectlOut,
  objectsOf,
  startCluster,
  temporaryDirectory,
} from '../../../testing/tenon-process.test-support.ts'
import { launchChromium, schemes, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

const machineDeployments = resolve('examples/cluster-api/hub/three-sizes.yaml')
const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'first' },
  spec: {
    // Not on a node that the cloud has from the beginning.
    nodeSelector: { 'karpenter.sh/nodepool': 'default' },
    containers: [{ name: 'main', image: 'nginx', resources: { requests: { cpu: '500m', memory: '512Mi' } } }],
  },
})

for (const [provider, title] of [
  ['exoscale', 'Exoscale'],
  ['clever-cloud', 'Clever Cloud'],
  ['cluster-api', 'Cluster API'],
] as const)
  test(`PGE-9 in an empty cluster of ${title} the button writes a NodePool that validates, and a pod runs on it`, {
    skip,
  }, async (t) => {
    assert.ok(browser)
    const cwd = await temporaryDirectory(t)
    await startCluster(t, cwd, 'up', '--provider', provider, '--no-apply', '--boot-delay', '1s')
    // Whoever manages the clusters has made them.
    if (provider === 'cluster-api') await kubectlOut(cwd, ['create', '-f', machineDeployments])
    const kubeconfig = join(cwd, '.tenon/kubeconfig')
    const visit = await Visit.open(browser, await servedPage(t, { kubeconfig }, { drainTimeout: 1000 }))
    const { page } = visit
    const start = page.getByRole('region', { name: 'Start here' })
    const manifest = start.getByLabel(`Manifest for ${title}`)
    await manifest.waitFor()
    await visit.settled()
    const menu = await page.locator('nav').getByRole('link').allTextContents()
    // Some clouds have nodes of their own from the beginning.
    const hasNodes = (await objectsOf(cwd, 'nodes')).length > 0
    for (const dead of ['What if', 'Replay', ...(hasNodes ? [] : ['Map', 'Cost'])])
      assert.ok(!menu.includes(dead), menu.join())
    for (const live of ['Overview', 'Pods pending', 'Pools']) assert.ok(menu.includes(live), menu.join())
    for (const colorScheme of schemes)
      for (const width of [360, 1280]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        assert.ok((await visit.overflow()) <= 0, `${width}: scrolls sideways`)
        assert.deepEqual(await visit.violations(), [])
        await visit.screenshot(`start-${provider}-${colorScheme}-${width}`)
      }
    const text = (await manifest.textContent()) ?? ''
    const file = join(cwd, 'first.yaml')
    await writeFile(file, text)
    const { code, out, err } = await runCommand(['validate', file], { cwd })
    assert.equal(code, 0, `${out}${err}${text}`)
    await start.getByRole('button', { name: 'Create the NodePool…' }).click()
    await page.getByRole('button', { name: 'Run it' }).click()
    const done = page.getByRole('dialog').getByRole('status')
    await done.filter({ hasText: 'created' }).waitFor()
    assert.match((await done.textContent()) ?? '', /nodepool\.karpenter\.sh\/default created/)
    const [pool] = await objectsOf<NodePool>(cwd, 'nodepools')
    assert.equal(pool?.metadata.name, 'default')
    await kubectlOut(cwd, ['create', '-f', '-'], pod)
    await eventually(
      async () =>
        (await objectsOf<Pod>(cwd, 'pods')).find(
          ({ metadata, status }) => metadata.name === 'first' && status?.phase === 'Running',
        ),
      () => 'the pod runs',
    )
    await page.keyboard.press('Escape')
    await start.waitFor({ state: 'detached' })
    await page.locator('nav').getByRole('link', { name: 'Map', exact: true }).waitFor()
    assert.deepEqual(visit.faults, [])
  })
