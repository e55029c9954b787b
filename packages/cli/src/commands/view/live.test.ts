import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { karpenterKinds, type KubeObject, kinds } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { pauseAnnotations, resumedKeys } from '@tenon/operator/objects'
import { runCommand } from '../../testing/command.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { endPodsAtOnce, holdPods, ownedPod, readersKubeconfig } from '../../testing/refusing.test-support.ts'
import { type ServedApi, serveApi } from '../../testing/served-api.test-support.ts'
import { PlayedScreen } from './screen.test-support.ts'

/** A cluster as the Go Karpenter leaves it: its objects, and no Tenon. */
async function aCluster(
  t: TestContext,
  objects: readonly KubeObject[] = snapshot.objects,
): Promise<ServedApi & { readonly catalogue: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-live-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const api = await serveApi(t, folder, objects)
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
  await screen.shows((text) =>
    text.replaceAll('\n', ' ').includes(`run: kubectl cordon n1 --kubeconfig ${kubeconfig} ? y/N`),
  )
  assert.deepEqual(writesOf(api), [])
  screen.type('y')
  await screen.shows((text) => text.includes('node/n1 cordoned') && /n1 .*cordoned/i.test(text))
  assert.deepEqual(writesOf(api), ['PATCH /api/v1/nodes/n1'])
  assert.equal(local.get(kinds.node, undefined, 'n1')?.spec?.unschedulable, true)
})

/** The nodes of the snapshot, with two pods on one that a ReplicaSet would put back. */
const withOwnedPods: readonly KubeObject[] = [
  ...snapshot.objects.filter(({ kind }) => kind !== 'Pod'),
  ownedPod('web-a', 'n1'),
  ownedPod('web-b', 'n1'),
]
const eviction = (name: string) => `POST /api/v1/namespaces/shop/pods/${name}/eviction`

test('CON-21 in the terminal a drain shows its command, asks, evicts, and tells when the node is drained', async (t) => {
  const api = await aCluster(t, withOwnedPods)
  t.after(endPodsAtOnce(api.local))
  const screen = onScreen(t, ['--kubeconfig', api.kubeconfig, '--allow-actions', '--drain-timeout', '20s'])
  await screen.shows((text) => text.includes('> n1'))
  screen.type('r')
  await screen.shows((text) => {
    const line = text.replaceAll(/\s+/g, ' ')
    return line.includes(
      `run: kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --timeout=20s --kubeconfig ${api.kubeconfig} ? y/N`,
    )
  })
  screen.type('n')
  await screen.shows((text) => text.includes('nothing was changed'))
  assert.deepEqual(writesOf(api), [])
  screen.type('ry')
  await screen.shows((text) => text.includes('node/n1 drained'))
  assert.deepEqual(writesOf(api), ['PATCH /api/v1/nodes/n1', eviction('web-a'), eviction('web-b')])
  assert.deepEqual(api.local.list(kinds.pod), [])
})

test('CON-21 in the terminal a drain that a PodDisruptionBudget refuses names it and the pods', async (t) => {
  const api = await aCluster(t, withOwnedPods)
  holdPods(api.local)
  const screen = onScreen(t, ['--kubeconfig', api.kubeconfig, '--allow-actions', '--drain-timeout', '1s'])
  await screen.shows((text) => text.includes('> n1'))
  screen.type('ry')
  const text = await screen.shows((shown) => shown.includes('failed: kubectl drain n1'))
  const told = text.replaceAll(/\s+/g, ' ')
  assert.match(told, /node\/n1 cordoned, but not drained within 1 s/)
  assert.match(told, /pod shop\/web-a may not be evicted now: The disruption budget web needs 2 healthy pods/)
  assert.equal(api.local.list(kinds.pod).length, 2)
  screen.type('\u001b')
  await screen.shows((shown) => shown.includes('> n1') && shown.includes('Cordoned'))
})

test('CON-21 in the terminal a drain evicts nothing when no controller would put a pod back', async (t) => {
  const api = await aCluster(t)
  const screen = onScreen(t, ['--kubeconfig', api.kubeconfig, '--allow-actions'])
  await screen.shows((text) => text.includes('> n1'))
  screen.type('ry')
  const text = await screen.shows((shown) => shown.includes('no controller'))
  assert.match(
    text.replaceAll(/\s+/g, ' '),
    /nothing evicted: no controller would put back .*shop\/a, shop\/b/,
  )
  assert.deepEqual(writesOf(api), ['PATCH /api/v1/nodes/n1'])
})

test('CON-21 in the terminal what the rights do not allow is said in the words of the server, and changes nothing', async (t) => {
  const api = await aCluster(t)
  const kubeconfig = await readersKubeconfig(api)
  const screen = onScreen(t, ['--kubeconfig', kubeconfig, '--allow-actions'])
  await screen.shows((text) => text.includes('> n1'))
  const tries = [
    { keys: 'u', says: 'nodes "n1" is forbidden: User "reader" cannot patch' },
    { keys: 'r', says: 'nodes "n1" is forbidden: User "reader" cannot patch' },
    { keys: '\u0004', says: 'nodes "n1" is forbidden: User "reader" cannot delete' },
    { keys: ':pools\rp', says: 'nodepools.karpenter.sh "web" is forbidden: User "reader" cannot patch' },
  ]
  for (const { keys, says } of tries) {
    screen.type(keys)
    await screen.shows((text) => text.includes('? y/N'))
    screen.type('y')
    await screen.shows(
      (text) =>
        text.includes('failed: ') &&
        text.replaceAll(/\s+/g, ' ').includes(`Error from server (Forbidden): ${says}`),
    )
    screen.type('\u001b')
    await screen.shows((text) => !text.includes('failed: '))
  }
  assert.notEqual(api.local.get(kinds.node, undefined, 'n1')?.spec?.unschedulable, true)
})

test('CON-21 in the terminal a key that means nothing for a row says so', async (t) => {
  const { kubeconfig } = await aCluster(t)
  const screen = onScreen(t, ['--kubeconfig', kubeconfig, '--allow-actions'])
  await screen.shows((text) => text.includes('> n1'))
  const says = { u: 'only nodes are cordoned', r: 'only nodes are drained' }
  for (const [key, note] of Object.entries(says)) {
    screen.type(`:pools\r${key}`)
    await screen.shows((text) => text.includes(note))
  }
  screen.type(':cost\r\u0004')
  await screen.shows((text) => text.includes('no object that could be deleted'))
})

test('CON-21 in the terminal claims, pods and nodes are deleted, and NodePools paused and resumed', async (t) => {
  const api = await aCluster(t)
  const { kubeconfig, local } = api
  const screen = onScreen(t, ['--kubeconfig', kubeconfig, '--allow-actions'])
  await screen.shows((text) => text.includes('> n1'))
  const act = async (keys: string, command: string, done: string) => {
    screen.type(keys)
    await screen.shows((text) => text.replaceAll(/\s+/g, ' ').includes(`run: ${command}`))
    const before = writesOf(api).length
    screen.type('y')
    await screen.shows((text) => text.includes(done))
    return writesOf(api).slice(before)
  }
  assert.deepEqual(
    await act(
      ':claims\r\u0004',
      'kubectl delete nodeclaim web-1 --wait=false',
      'nodeclaim.karpenter.sh "web-1" deleted',
    ),
    ['DELETE /apis/karpenter.sh/v1/nodeclaims/web-1'],
  )
  assert.equal(local.get(karpenterKinds.nodeClaim, undefined, 'web-1'), undefined)
  assert.deepEqual(
    await act(':pods\r\u0004', 'kubectl delete pod waits -n shop --wait=false', 'pod "waits" deleted'),
    ['DELETE /api/v1/namespaces/shop/pods/waits'],
  )
  const paused = () =>
    Object.keys(local.get(karpenterKinds.nodePool, undefined, 'web')?.metadata.annotations ?? {})
  assert.deepEqual(await act(':pools\rp', 'tenon pause nodepool/web', 'no controller has said'), [
    'PATCH /apis/karpenter.sh/v1/nodepools/web',
  ])
  assert.deepEqual(paused(), [pauseAnnotations.person])
  local.patch(
    karpenterKinds.nodePool,
    undefined,
    'web',
    {
      status: {
        conditions: [
          {
            type: 'Paused',
            status: 'True',
            reason: 'Paused',
            message: 'by hand',
            lastTransitionTime: '2026-11-27T12:00:00Z',
          },
        ],
      },
    },
    'status',
  )
  screen.type('\u001b')
  // What the key does depends on it.
  await screen.shows((text) => text.includes('Unknown,Paused'))
  // The pause of the NodePool is none of the cluster.
  screen.type(':nodes\rp')
  await screen.shows((text) => text.includes('run: tenon pause --kubeconfig'))
  screen.type('n')
  await act(':pools\rp', 'tenon resume nodepool/web', 'nodepool.karpenter.sh/web resumed')
  assert.deepEqual(paused(), [resumedKeys.nodePool])
  // What still stands there now is the pause of the cluster.
  for (const tab of [':pools', ':nodes']) {
    screen.type(`${tab}\rp`)
    await screen.shows((text) => text.includes('run: tenon resume --kubeconfig'))
    screen.type('n')
  }
})
