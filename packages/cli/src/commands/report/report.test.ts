import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { KubeObject, Node, Pod } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { runCommand } from '../../testing/command.test-support.ts'
import { serveApi } from '../../testing/served-api.test-support.ts'
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

/** Thirty nodes of two types, each with a pod. */
const thirty: readonly (Node | Pod)[] = Array.from({ length: 30 }, (_, at) => [
  aNode(at, at % 2 === 0 ? 'small' : 'large'),
  aPod(`web-${at}`, `n${at}`, { annotations: { 'example.com/token': 'planted-token' } }),
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
  assert.match(next[0]?.file?.text ?? '', /"large": "0.00",\n {4}"small": "0.00"/)
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

test('ADO-2 the report names who adds nodes: Karpenter by what it writes, Cluster Autoscaler by its ConfigMap, or nobody', async (t) => {
  const { kubeconfig, local } = await serveApi(t, folder, thirty)
  const found = async () =>
    parsed((await report('--kubeconfig', kubeconfig, '-o', 'json')).out).autoscalers.map(({ kind, by }) => [
      kind,
      by,
    ])
  assert.deepEqual(await found(), [])
  const configMap: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-autoscaler-status', namespace: 'default' },
  }
  local.create(
    { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
    configMap,
  )
  assert.deepEqual(await found(), [['clusterAutoscaler', 'ConfigMap default/cluster-autoscaler-status']])
})

test('ADO-5 a planted token is in no form of the report, and --redact leaves no name', async (t) => {
  const { kubeconfig } = await serveApi(t, folder, thirty)
  await writeFile(join(folder, 'prices.json'), JSON.stringify(prices))
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
  assert.match(err, /^tenon: --prices wrong\.json: prices\.small: is -1; write a price/)
  assert.match((await report('-s', file, '--prices', 'nowhere.json')).err, /^tenon: --prices: ENOENT/)
})
