import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ConfigMap, kinds, type Node, type Pod } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { runCommand } from '../../testing/command.test-support.ts'
import { readersKubeconfig } from '../../testing/refusing.test-support.ts'
import { crdType, serveApi, type ServedApi } from '../../testing/served-api.test-support.ts'
import { aPod, snapshot } from '../../testing/snapshot.test-support.ts'
import type { PrintedReport } from './printed.ts'

let folder: string
let file: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-report-'))
  file = join(folder, 'snapshot.jsonl')
  await writeSnapshot(file, snapshot)
})

after(() => rm(folder, { recursive: true }))

const report = (...args: readonly string[]) => runCommand(['report', ...args], { cwd: folder })
const parsed = (out: string): PrintedReport => JSON.parse(out) as PrintedReport

const instanceType = 'node.kubernetes.io/instance-type'

function aNode(at: number, type: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `n${at}`,
      labels: { [instanceType]: type, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
      annotations: { 'example.com/join-token': 'planted-token' },
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { providerID: `cloud://n${at}` },
    status: {
      capacity: { cpu: '4', memory: '16Gi', pods: '110' },
      allocatable: { cpu: '4', memory: '16Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: { kubeletVersion: 'v1.36.0' },
    },
  }
}

function withToken(pod: Pod): Pod {
  const env = [{ name: 'TOKEN', value: 'planted-token' }]
  return { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.map((each) => ({ ...each, env })) } }
}

/** Thirty nodes of two types, each with a pod. */
const thirty: readonly (Node | Pod)[] = Array.from({ length: 30 }, (_, at) => [
  aNode(at, at % 2 === 0 ? 'small' : 'large'),
  withToken(aPod(`web-${at}`, `n${at}`, { annotations: { 'example.com/token': 'planted-token' } })),
]).flat()

const prices = { currency: 'EUR', prices: { small: '0.05' } }

test('ADO-1 thirty nodes without Tenon are reported with nothing but reads, and in less than 20 s', async (t) => {
  const { kubeconfig, requests } = await serveApi(t, folder, thirty)
  const startedMs = performance.now()
  const { code, out, err } = await report('--kubeconfig', kubeconfig, '-o', 'json')
  assert.equal(code, 0, err)
  assert.ok(performance.now() - startedMs < 20_000)
  assert.deepEqual(
    requests.filter((each) => !each.startsWith('GET ') || each.includes('watch=true')),
    [],
  )
  const { now, plans, next, autoscalers } = parsed(out)
  assert.deepEqual([now.nodes, now.pods, now.price, plans, autoscalers], [30, 30, undefined, undefined, []])
  assert.match(next[0]?.file?.text ?? '', /"large": "\?",\n {4}"small": "\?"/)
  assert.match(next[1]?.file?.text ?? '', /observeOnly: true/)
})

test('ADO-3 prices of half the types: what is not priced is said, and no total has it as 0', async (t) => {
  const { kubeconfig } = await serveApi(t, folder, thirty)
  await writeFile(join(folder, 'prices.json'), JSON.stringify(prices))
  const args = ['--kubeconfig', kubeconfig, '--prices', 'prices.json']
  const { cost, now, plans, unpriced } = parsed((await report(...args, '-o', 'json')).out)
  assert.deepEqual([now.price?.perMonth, unpriced.length], [547.5, 15])
  assert.deepEqual(
    cost.type.groups.map(({ name, perMonth, unpriced: without }) => [name, perMonth, without]),
    [
      ['small', 547.5, 0],
      ['large', undefined, 15],
    ],
  )
  // The nodes without a price stay, and have room for all pods.
  assert.deepEqual([plans?.fromNothing.nodes, plans?.fromNothing.price.perMonth], [15, 0])
  const text = (await report(...args)).out
  assert.match(
    text,
    /The price of 15 nodes is not known \(large\)\. They are in no sum, and stay in each plan\./,
  )
  assert.match(text, /\| large \| 15 \| unknown \| unknown \| 15 \|/)
})

test('ADO-1 rights to list a few kinds are enough, and what may not be read is said', async (t) => {
  const api = await serveApi(t, folder, thirty)
  const resources = ['nodes', 'pods', 'namespaces', 'daemonsets', 'nodepools', 'nodeclaims']
  const kubeconfig = await readersKubeconfig(api, { apiGroups: ['*'], resources, verbs: ['list'] })
  const { code, out, err } = await report('--kubeconfig', kubeconfig, '-o', 'json')
  assert.equal(code, 0, err)
  const { notRead, now } = parsed(out)
  assert.equal(now.nodes, 30)
  assert.ok(notRead.includes('poddisruptionbudgets') && notRead.includes('deployments'), String(notRead))
  assert.ok(!notRead.includes('pods') && !notRead.includes('nodepools'))
  const none = await report('--kubeconfig', await readersOf(api, 'namespaces'))
  assert.deepEqual([none.code, none.out], [1, ''])
  assert.match(none.err, /nodes is forbidden|pods is forbidden/)
})

/** Replaces the rights of the reader. */
async function readersOf(api: ServedApi, resource: string): Promise<string> {
  const roles = {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'ClusterRole',
    plural: 'clusterroles',
    namespaced: false,
  }
  const rules = [{ apiGroups: ['*'], resources: [resource], verbs: ['list'] }]
  api.local.patch(roles, undefined, 'reader', { rules })
  return await Promise.resolve(`${api.kubeconfig}-reader`)
}

const crds = (local: ServedApi['local']) => {
  for (const plural of ['nodepools', 'nodeclaims'])
    local.delete(crdType, undefined, `${plural}.karpenter.sh`, {})
}

test('ADO-2 Cluster Autoscaler is known by its ConfigMap, and a cluster with nothing has nobody', async (t) => {
  const { kubeconfig, local } = await serveApi(t, folder, thirty)
  crds(local)
  await writeFile(join(folder, 'prices.json'), JSON.stringify({ small: 0.05, large: 0.2 }))
  const found = async () =>
    parsed((await report('--kubeconfig', kubeconfig, '-o', 'json', '--prices', 'prices.json')).out)
  const nobody = await found()
  assert.deepEqual(
    [nobody.autoscalers, nobody.next.at(-1)?.commands.includes('tenon crds apply')],
    [[], true],
  )
  // Thirty pods of half a core fit on four small nodes.
  assert.deepEqual([nobody.now.price?.perMonth, nobody.plans?.fromNothing.price.perMonth], [2737.5, 146])
  const configMap: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-autoscaler-status', namespace: 'default' },
  }
  local.create(kinds.configMap, configMap)
  const { autoscalers, plans } = await found()
  assert.deepEqual(autoscalers, [
    { kind: 'clusterAutoscaler', by: 'ConfigMap default/cluster-autoscaler-status' },
  ])
  assert.deepEqual(plans, nobody.plans)
})

test('ADO-2 Karpenter is known by what it writes, and compared with by its NodePools', async (t) => {
  const written = [{ manager: 'karpenter', operation: 'Update' as const, subresource: 'status' }]
  const objects = snapshot.objects.map((object) =>
    object.kind === 'NodePool' || object.kind === 'NodeClaim'
      ? { ...object, metadata: { ...object.metadata, managedFields: written } }
      : object,
  )
  const { kubeconfig } = await serveApi(t, folder, objects)
  await writeFile(join(folder, 'prices.json'), JSON.stringify(prices))
  const { out } = await report('--kubeconfig', kubeconfig, '-o', 'json', '--prices', 'prices.json')
  const { autoscalers, cost, plans } = parsed(out)
  assert.deepEqual(autoscalers, [
    { kind: 'karpenter', by: 'status of NodeClaims written by karpenter' },
    { kind: 'karpenter', by: 'status of NodePools written by karpenter' },
  ])
  assert.equal(cost.nodepool.groups[0]?.name, 'web')
  assert.ok(plans)
})

test('ADO-5 a planted token is in no snapshot and in no form of the report, and --redact leaves no name', async (t) => {
  const { kubeconfig } = await serveApi(t, folder, thirty)
  await writeFile(join(folder, 'prices.json'), JSON.stringify(prices))
  await runCommand(['snapshot', 'save', 'saved.jsonl', '--kubeconfig', kubeconfig], { cwd: folder })
  const saved = await readFile(join(folder, 'saved.jsonl'), 'utf8')
  assert.match(saved, /web-29/)
  assert.doesNotMatch(saved, /planted-token/)
  for (const format of ['json', 'markdown', 'html']) {
    const { out } = await report('--kubeconfig', kubeconfig, '-o', format)
    assert.doesNotMatch(out, /planted-token/)
    assert.match(out, /shop/)
    const hidden = await report(
      '--kubeconfig',
      kubeconfig,
      '-o',
      format,
      '--redact',
      '--prices',
      'prices.json',
    )
    assert.doesNotMatch(hidden.out, /planted-token|shop|web-\d|127\.0\.0\.1/)
    assert.match(hidden.out, /small/)
  }
})

test('the file decides about the format, and one key gives the same pseudonyms', async () => {
  const { code, err } = await report('-s', file, '--file', 'report.html')
  assert.deepEqual([code, err], [0, 'report.html saved\n'])
  const page = await readFile(join(folder, 'report.html'), 'utf8')
  assert.match(page, /^<!doctype html>/)
  const hidden = () =>
    runCommand(['report', '-s', file, '--redact'], { cwd: folder, env: { TENON_REDACT_KEY: 'key' } })
  assert.equal((await hidden()).out, (await hidden()).out)
})

test('a wrong price file is refused with its field', async () => {
  await writeFile(join(folder, 'wrong.json'), '{"prices": {"small": -1}}')
  const { code, err } = await report('-s', file, '--prices', 'wrong.json')
  assert.equal(code, 1)
  assert.match(err, /^error: --prices wrong\.json: prices\.small: is -1; write a price/)
  assert.match((await report('-s', file, '--prices', 'nowhere.json')).err, /^error: --prices: ENOENT/)
})

test('objects that cannot be read are named, and the others are reported', async () => {
  const bad = { metadata: { name: 'bad', namespace: 'shop' } }
  const objects = [
    ...thirty,
    { ...bad, apiVersion: 'v1', kind: 'Pod', spec: { nodeName: 'n1' } },
    { ...bad, apiVersion: 'v1', kind: 'PersistentVolume' },
    { ...bad, apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
    { ...bad, apiVersion: 'karpenter.sh/v1', kind: 'NodePool', spec: { limits: { cpu: 'abc' } } },
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n-bad', labels: { [instanceType]: 5 } } },
  ] as typeof snapshot.objects
  await writeSnapshot(join(folder, 'bad.jsonl'), { ...snapshot, objects })
  const { code, err, out } = await report('-s', 'bad.jsonl', '-o', 'json')
  assert.equal(code, 0, err)
  const { now, unreadable } = parsed(out)
  assert.deepEqual([now.nodes, now.pods, unreadable.length], [30, 30, 5])
  assert.match(
    (await report('-s', 'bad.jsonl')).out,
    /^> 5 objects cannot be read, and in no figure: Pod shop\/bad \(/m,
  )
})

test('names in a file cannot begin a line, a tag or an image of the Markdown', async () => {
  const name = 'x\n# own <script>![](https://example.com)'
  const objects = [{ ...aNode(1, name), metadata: { ...aNode(1, name).metadata, name } }]
  await writeSnapshot(join(folder, 'hostile.jsonl'), { ...snapshot, objects })
  const { out } = await report('-s', 'hostile.jsonl')
  const [text = ''] = out.split('## Next')
  assert.match(text, /own/)
  assert.doesNotMatch(text, /^# own|<script|!\[/m)
})
