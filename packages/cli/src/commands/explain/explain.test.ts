import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { aClaimedNode, aNode, aPending, aPool, aRunning, aSnapshot, aType } from '@tenon/ask/test-clusters'
import type { Node, NodeClaim } from '@tenon/api'
import { chosenNamespace } from '../../kubectl/connection.ts'
import { runCommand } from '../../testing/command.test-support.ts'

async function saved(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  const pods = ['a', 'b', 'c'].map((name) => aPending(name, { cpu: '9' }, {}, 'web'))
  await writeSnapshot(path, aSnapshot([aPool('blue'), aNode('alone', '1'), ...pods], [aType('small', 1)]))
  return path
}

test('EXP-4 pods of all namespaces are one entry where they wait for one reason', async (t) => {
  const { code, out } = await runCommand(['explain', 'pods', '-A', '-s', await saved(t)])
  assert.equal(code, 0)
  assert.match(out, /^3 pods of 1 ReplicaSet: No NodePool can launch a node for it/)
  assert.match(out, /✗ NodePool blue: no instance type has enough resources/)
})

test('pods, nodes and NodePools are explained by name, as text and for programs', async (t) => {
  const path = await saved(t)
  const pool = await runCommand(['explain', 'nodepool/blue', '-s', path])
  assert.match(pool.out, /^nodepool\/blue: It launches nodes\n/)
  const node = await runCommand(['explain', 'no', 'alone', '-s', path])
  assert.match(node.out, /^node\/alone: It has no NodeClaim/)
  const pod = await runCommand(['explain', 'po/a', '-o', 'json', '-s', path])
  const answer: unknown = JSON.parse(pod.out)
  assert.ok(typeof answer === 'object' && answer !== null && 'kind' in answer && 'apiVersion' in answer)
  assert.deepEqual([answer.apiVersion, answer.kind], ['tenon.sh/v1alpha1', 'PodExplanation'])
})

test('WNT-24 --stuck lists nodes that only PodDisruptionBudgets hold which can never allow an eviction', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  const [pool, type] = [aPool('blue'), aType('small', 1)]
  const running = (app: string) => {
    const pod = aPending(app, { cpu: '1' })
    return aRunning({ ...pod, metadata: { ...pod.metadata, labels: { app } } }, `on-${app}`)
  }
  const pdb = (app: string, spec: object) => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace: 'default' },
    spec: { selector: { matchLabels: { app } }, ...spec },
    status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 2 },
  })
  const apps = ['free', 'held', 'waiting']
  const consolidatable = { type: 'Consolidatable', status: 'True', reason: 'Consolidatable', message: '' }
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  const nodes = apps.flatMap((app) => {
    const [node, claim] = aClaimedNode(`on-${app}`, pool, type) as readonly [Node, NodeClaim]
    const conditions = [...(claim.status?.conditions ?? []), { ...consolidatable, lastTransitionTime }]
    return [node, { ...claim, status: { ...claim.status, conditions } }, running(app)]
  })
  const budgets = [pdb('held', { maxUnavailable: 0 }), pdb('waiting', { minAvailable: 1 })]
  await writeSnapshot(path, aSnapshot([pool, ...nodes, ...budgets], [type]))
  const { code, out } = await runCommand(['explain', 'nodes', '--stuck', '-s', path])
  assert.equal(code, 0)
  assert.match(
    out,
    /^node\/on-held: It stays: A PDB prevents pod evictions \(PDB=default\/held\): it can never/,
  )
  assert.doesNotMatch(out, /on-free|on-waiting/)
  const none = await runCommand(['explain', 'nodes', 'on-free', '--stuck', '-s', path])
  assert.match(none.out, /^No node is held only by PodDisruptionBudgets/)
  const pods = await runCommand(['explain', 'pods', '--stuck', '-s', path])
  assert.match(pods.err, /--stuck is for nodes and NodeClaims/)
})

test('EXP-29 a name that is unknown is an error in the words of kubectl', async (t) => {
  const path = await saved(t)
  for (const [type, plural] of [
    ['pod', 'pods'],
    ['node', 'nodes'],
    ['nodeclaim', 'nodeclaims.karpenter.sh'],
    ['nodepool', 'nodepools.karpenter.sh'],
  ] as const) {
    const { code, err } = await runCommand(['explain', type, 'nobody', '-s', path])
    assert.equal(code, 1)
    assert.equal(err, `Error from server (NotFound): ${plural} "nobody" not found\n`)
  }
})

test('EXP-1 three changes are shown, all with --all, and -o patch prints them as commands of kubectl', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const taint = { key: 'team', value: 'a', effect: 'NoSchedule' } as const
  const pool = aPool('blue', { limits: { cpu: '1' } })
  const pod = aPending(
    'a',
    { cpu: '4', memory: '1Gi' },
    { nodeSelector: { 'topology.kubernetes.io/zone': 'zone-b' } },
    'web',
  )
  const others = ['red', 'green'].map((name) =>
    aPool(
      name,
      {},
      { requirements: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-a'] }] },
    ),
  )
  const tainted = aPool('tainted', {}, { taints: [taint] })
  const path = join(folder, 'cluster.jsonl')
  await writeSnapshot(path, aSnapshot([pool, ...others, tainted, pod], [aType('large', 8)]))
  const shownOf = async (...flags: string[]) =>
    (await runCommand(['explain', 'pod', 'a', '-s', path, ...flags])).out
      .split('\n')
      .filter((line) => line.startsWith('+ '))
  const shown = await shownOf()
  const all = await shownOf('--all')
  assert.equal(shown.length, 3)
  assert.ok(all.length > 3)
  assert.deepEqual(all.slice(0, 3), shown)
  const { out } = await runCommand(['explain', 'pod', 'a', '-s', path, '-o', 'patch'])
  const lines = out.trimEnd().split('\n')
  assert.equal(lines.filter((line) => line.startsWith('# ')).length, 3)
  for (const line of lines.filter((each) => !each.startsWith('#')))
    assert.match(line, /^kubectl patch \S+\/\S+( -n default)? --type=json -p '\[\{"op":/)
  const wrong = await runCommand(['explain', 'nodepool', 'blue', '-s', path, '-o', 'patch'])
  assert.deepEqual([wrong.code, wrong.err], [1, 'error: -o patch is for pods: name pods, or use -o json\n'])
})

test('explain looks into the namespace of the context, unless -n names another one', async (t) => {
  const path = await saved(t)
  const missing = await runCommand(['explain', 'pod', 'a', '-n', 'shop', '-s', path])
  assert.equal(missing.err, 'Error from server (NotFound): pods "a" not found\n')
  const config = join(path, '..', 'kubeconfig')
  const context = { name: 'c', context: { cluster: 'c', user: 'u', namespace: 'shop' } }
  const cluster = { name: 'c', cluster: { server: 'https://127.0.0.1:1' } }
  const user = { name: 'u', user: {} }
  await writeFile(
    config,
    JSON.stringify({ 'current-context': 'c', contexts: [context], clusters: [cluster], users: [user] }),
  )
  assert.equal(chosenNamespace({ env: { KUBECONFIG: config } }, {}), 'shop')
  assert.equal(chosenNamespace({ env: { KUBECONFIG: config } }, { namespace: 'web' }), 'web')
  assert.equal(chosenNamespace({ env: { KUBECONFIG: '/nowhere' } }, { snapshot: path }), 'default')
})

/** A cluster where three of four pods of Deployment web run, and others wait for something else than a node. */
async function mixed(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  const [pool, type] = [aPool('blue'), aType('small', 2)]
  const hash = { 'pod-template-hash': '7d9f' }
  const web = (name: string, cpu: string) => {
    const pod = aPending(name, { cpu }, {}, 'web')
    return { ...pod, metadata: { ...pod.metadata, labels: hash } }
  }
  const unseen = { phase: 'Pending', conditions: [] }
  const gated = {
    ...aPending('gated', { cpu: '1' }, { schedulingGates: [{ name: 'team/quota' }] }),
    status: unseen,
  }
  const other = { ...aPending('other', { cpu: '1' }, { schedulerName: 'volcano' }), status: unseen }
  const running = ['a', 'b', 'c'].map((name) => aRunning(web(name, '500m'), 'n1'))
  const objects = [pool, ...aClaimedNode('n1', pool, type), ...running, web('d', '9'), gated, other]
  await writeSnapshot(path, aSnapshot(objects, [type]))
  return path
}

test('PGE-14 explain pods -A lists gated pods and those of other schedulers', async (t) => {
  const { code, out } = await runCommand(['explain', 'pods', '-A', '-s', await mixed(t)])
  assert.equal(code, 0)
  assert.match(
    out,
    /^1 pod of 1 Pod: Nothing is decided about it until its scheduling gates are removed \(team\/quota\)$/m,
  )
  assert.match(
    out,
    /^1 pod of 1 Pod: Scheduler volcano has not called it unschedulable, and no node is launched/m,
  )
  assert.match(out, /^1 pod of 1 Deployment: No NodePool can launch a node for it$/m)
})

test('PGE-14 a workload is explained with its pods, its next node and its price, by each name of its kind', async (t) => {
  const path = await mixed(t)
  const outs = await Promise.all(
    ['deployment/web', 'deploy/web', 'deployments.apps/web', 'deployments'].map((words) =>
      runCommand(['explain', words, '-s', path]),
    ),
  )
  for (const { code, out } of outs) assert.deepEqual([code, out], [0, outs[0]?.out])
  const { out = '' } = outs[0] ?? {}
  assert.match(
    out,
    /^deployment\/web in default: 3 of 4 pods on nodes, 0 planned, 1 waiting\n1 pod of 1 Deployment: No/,
  )
  assert.match(out, /^One more pod: /m)
  assert.match(out, /^Price of what its pods request: 0\.0375 EUR per hour$/m)
  const json = await runCommand(['explain', 'deploy', 'web', '-o', 'json', '-s', path])
  const { kind, pods } = JSON.parse(json.out) as { kind: string; pods: object }
  assert.deepEqual([kind, pods], ['WorkloadExplanation', { onNodes: 3, planned: 0, waiting: 1 }])
  const missing = await runCommand(['explain', 'statefulset', 'web', '-s', path])
  assert.deepEqual(
    [missing.code, missing.out, missing.err],
    [1, '', 'error: no pod of statefulset/web is in namespace default\n'],
  )
})
