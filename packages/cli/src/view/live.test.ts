import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { kinds } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { runCommand } from '../commands/command.test-support.ts'
import { snapshot } from '../get/snapshot.test-support.ts'
import { type ServedApi, serveApi } from '../testing/served-api.test-support.ts'
import { PlayedScreen } from './screen.test-support.ts'

/** A cluster as the Go Karpenter leaves it: its objects, and no Tenon. */
async function aCluster(t: TestContext): Promise<ServedApi & { readonly catalogue: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-live-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const api = await serveApi(t, folder, snapshot.objects)
  const catalogue = join(folder, 'catalogue.jsonl')
  await writeSnapshot(catalogue, snapshot)
  return { ...api, catalogue }
}

function onScreen(t: TestContext, args: readonly string[]): PlayedScreen {
  const screen = new PlayedScreen(args, { columns: 120, rows: 30 })
  t.after(() => screen.close())
  return screen
}

function writesOf({ requests }: ServedApi): readonly string[] {
  return requests.filter((each) => !each.startsWith('GET '))
}

test('CON-20 CON-21 of a cluster that only Go Karpenter runs there are nodes, pods and prices of a list, and why the rest is empty', async (t) => {
  const api = await aCluster(t)
  const args = ['view', '--once', '--kubeconfig', api.kubeconfig, '--catalogue', api.catalogue]
  const { code, err, out } = await runCommand(args)
  assert.equal(code, 0, err)
  assert.match(out, /^2 nodes, 0 pending; cpu 1\.5\/4 \(38%\); EUR 0\.050\/hour EUR 36\.500\/month \?1$/m)
  assert.match(out, /^4 pods: 1 pending, 3 running, 3 bound$/m)
  for (const what of ['journal', 'decisions'])
    assert.match(out, new RegExp(`^note: without ${what}: no Tenon leads this cluster$`, 'm'))
  assert.doesNotMatch(out, /without prices/)
  assert.deepEqual(writesOf(api), [])
})

test('CON-20 without a list prices are unknown, and it is said how to give one', async (t) => {
  const { kubeconfig } = await aCluster(t)
  const { out } = await runCommand(['view', '--once', '--kubeconfig', kubeconfig])
  assert.match(out, /^2 nodes, .*\?2$/m)
  assert.match(out, /^note: without prices: .*give --catalogue/m)
})

test('CON-8 a cut cluster is shown as stale with since when, and is right again once it answers', async (t) => {
  const { cut, kubeconfig, local } = await aCluster(t)
  const screen = onScreen(t, ['--kubeconfig', kubeconfig])
  await screen.shows((text) => text.includes('2 nodes') && text.includes('> n1'))
  const restore = await cut()
  await screen.shows((text) => /STALE since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(\d+s\)/.test(text))
  assert.match(screen.text(), /> n1/)
  local.delete(kinds.node, undefined, 'strange')
  await restore()
  await screen.shows(
    (text) => text.includes('1 node ') && !text.includes('STALE') && !text.includes('strange'),
  )
})

test('CON-21 with --allow-actions a key shows its command, asks, and does just that', async (t) => {
  const api = await aCluster(t)
  const { kubeconfig, local } = api
  const screen = onScreen(t, ['--kubeconfig', kubeconfig, '--allow-actions'])
  await screen.shows((text) => text.includes('> n1'))
  screen.type('u')
  await screen.shows((text) => text.includes('run: kubectl cordon n1 ? y/N'))
  assert.deepEqual(writesOf(api), [])
  screen.type('y')
  await screen.shows((text) => text.includes('node/n1 cordoned') && /n1 .*cordoned/i.test(text))
  assert.deepEqual(writesOf(api), ['PATCH /api/v1/nodes/n1'])
  assert.equal(local.get(kinds.node, undefined, 'n1')?.spec?.unschedulable, true)
})
