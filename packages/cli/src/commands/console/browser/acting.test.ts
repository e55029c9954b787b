/** Actions of the page on `tenon up`, where controllers and kubelets do what follows from them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { Browser, Page } from 'playwright-core'
import {
  eventually,
  objectsOf,
  startCluster,
  temporaryDirectory,
} from '../../../testing/tenon-process.test-support.ts'
import { launchChromium, skip, Visit } from './browser.test-support.ts'
import { servedPage } from './served-page.test-support.ts'

let browser: Browser | undefined

before(async () => {
  if (skip === false) browser = await launchChromium()
})

after(async () => {
  await browser?.close()
})

/** Does it, and says what the page says of it. */
async function done(page: Page, button: string): Promise<string> {
  await page
    .getByRole('button', { name: `${button}…` })
    .first()
    .click()
  await page.getByRole('button', { name: 'Run it' }).click()
  const told = page.getByRole('dialog').last().getByRole('status')
  await told.filter({ hasNotText: 'Running…' }).waitFor({ timeout: 60_000 })
  const text = (await told.textContent()) ?? ''
  await page.keyboard.press('Escape')
  return text
}

test('CON-21 actions on a running cluster', { skip }, async (t) => {
  assert.ok(browser)
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'up', '--boot-delay', '1s')
  const ready = await eventually(
    async () => {
      const pods = await objectsOf<Pod>(cwd, 'pods')
      const running = pods.filter(({ status }) => status?.phase === 'Running')
      return running.length === 20 ? running : undefined
    },
    () => 'the pods of the demonstration run',
  )
  const kubeconfig = join(cwd, '.tenon/kubeconfig')
  const link = await servedPage(t, { kubeconfig }, { drainTimeout: 60_000 })
  const visit = await Visit.open(browser, link)
  const { page } = visit

  await t.test('a paused NodePool says so, and is resumed', async () => {
    await visit.goTo('/pools')
    assert.match(await done(page, 'Pause'), /nodepool\.karpenter\.sh\/standard paused/)
    await page.getByRole('button', { name: 'Resume…' }).waitFor()
    const [pool] = await objectsOf<NodePool>(cwd, 'nodepools')
    const conditions = pool?.status?.conditions ?? []
    assert.equal(conditions.find(({ type }) => type === 'Paused')?.status, 'True')
    assert.match(await done(page, 'Resume'), /nodepool\.karpenter\.sh\/standard resumed/)
    await page.getByRole('button', { name: 'Pause…' }).waitFor()
  })

  await t.test('an edited NodePool is as it was edited', async () => {
    await visit.goTo('/what-if?nodepool=standard')
    const area = page.getByRole('textbox', { name: /^Manifests/ })
    await area.fill((await area.inputValue()).replace('consolidateAfter: 30s', 'consolidateAfter: 17m'))
    await page.getByRole('button', { name: 'Apply…' }).click()
    const patch = JSON.stringify({ spec: { disruption: { consolidateAfter: '17m' } } })
    await page.getByText(`kubectl patch nodepool standard --type=merge -p '${patch}'`).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    assert.equal(await done(page, 'Apply'), 'nodepool.karpenter.sh/standard patched')
    const [pool] = await objectsOf<NodePool>(cwd, 'nodepools')
    assert.equal(pool?.spec.disruption?.consolidateAfter, '17m')
  })

  await t.test('a drained node is empty, and its pods run elsewhere', async () => {
    const node = ready[0]?.spec.nodeName ?? ''
    const claims = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
    const claim = claims.find(({ status }) => status?.nodeName === node)?.metadata.name ?? ''
    await visit.goTo(`/map?as=table&node=claim%2F${claim}`)
    assert.equal(await done(page, 'Drain'), `node/${node} drained`)
    await eventually(
      async () => {
        const pods = await objectsOf<Pod>(cwd, 'pods')
        const elsewhere = pods.filter(
          ({ spec, status }) => spec.nodeName !== node && status?.phase === 'Running',
        )
        return elsewhere.length === 20 || undefined
      },
      () => 'all pods run on other nodes',
    )
    await page.getByRole('button', { name: 'Uncordon…' }).waitFor()
    await visit.screenshot('action-drained')
  })

  await t.test('a deleted NodeClaim goes with its node', async () => {
    const [claim] = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
    const { name } = claim?.metadata ?? { name: '' }
    await visit.goTo(`/map?as=table&node=claim%2F${name}`)
    assert.equal(await done(page, 'Delete NodeClaim'), `nodeclaim.karpenter.sh "${name}" deleted`)
    await eventually(
      async () => {
        const nodes = await objectsOf<Node>(cwd, 'nodes')
        return nodes.every(({ metadata }) => metadata.name !== claim?.status?.nodeName) || undefined
      },
      () => 'its node goes',
    )
  })

  assert.deepEqual(visit.faults, [])
})
