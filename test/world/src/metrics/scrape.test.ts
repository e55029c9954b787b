/** What holds for every scrape of a cluster at work (operations.md 9, 14). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kinds } from '@tenon/api'
import { defaultSettings, metricsHandler, metricTable } from '@tenon/operator'
import { openDisruption, setDrifted } from '../disruption/disruption-stage.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims, waitingPod } from '../testing/pools.test-support.ts'

interface Series {
  readonly family: string
  readonly labels: ReadonlyMap<string, string>
}

const suffixes = /_(bucket|sum|count)$/

/** The series of a scrape of the metrics port. */
async function scrape(stage: Stage): Promise<readonly Series[]> {
  const answer = await metricsHandler(stage.operator.operator)({
    method: 'GET',
    path: '/metrics',
    headers: {},
  })
  let text = ''
  for await (const chunk of answer.body) text += String(chunk)
  const types = new Map<string, string>()
  const series: Series[] = []
  for (const line of text.split('\n')) {
    const [, of, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (of !== undefined && type !== undefined) types.set(of, type)
    if (line === '' || line.startsWith('#')) continue
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    assert.ok(
      name !== undefined && value !== undefined && !Number.isNaN(Number(value.replace('Inf', 'Infinity'))),
      line,
    )
    const family = types.has(name) ? name : name.replace(suffixes, '')
    assert.ok(types.has(family), `${name} has no type`)
    const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)]
    assert.equal(pairs.map(([pair]) => pair).join(''), labels, line)
    series.push({ family, labels: new Map(pairs.map(([, key = '', label = '']) => [key, label])) })
  }
  const names = text.split('\n').flatMap((line) => /^([a-z].*) \S+$/.exec(line)?.[1] ?? [])
  assert.equal(new Set(names).size, names.length, 'a series is there twice')
  return series
}

/** A cluster in which everything happens: a launch, drift, a repair, evictions. */
async function busy(t: TestContext): Promise<Stage> {
  const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }
  const stage = await openDisruption(t, {
    disruption: { consolidateAfter: 'Never' },
    settings: { featureGates },
    idle: true,
    pool: { limits: { cpu: '1000' } },
  })
  const isLeaving = (name: string) => stage.claimNow(name)?.metadata.deletionTimestamp !== undefined
  stage.cloud.extras = { imageID: 'image-1,image-2' }
  stage.cloud.repairPolicies = [{ conditionType: 'Odd', conditionStatus: 'True', tolerationMs: minutes }]
  await stage.start()
  await stage.ready('old')
  await stage.ready('sick')
  await stage.pod('p', 'node-old')
  await stage.pod('q', 'node-sick')
  for (const name of ['well-1', 'well-2', 'well-3', 'well-4']) await stage.ready(name)
  setDrifted(stage, 'old')
  for (let i = 0; i < 7; i++) waitingPod(stage, `waits-${i}`, { cpu: '3' })
  await stage.world.clock.advanceUntil(() => madeClaims(stage).length > 0, 10 * minutes)
  // Nodes that pods are on their way to are not disrupted.
  for (let i = 0; i < 7; i++)
    stage.world.cluster.server.local.delete(kinds.pod, 'default', `waits-${i}`, { gracePeriodSeconds: 0 })
  for (const { metadata } of madeClaims(stage)) {
    await stage.join(metadata.name)
    await stage.report(`node-${metadata.name}`)
  }
  await stage.world.clock.advanceUntil(() => isLeaving('old'), 5 * minutes)
  const at = stage.nodeNow('node-sick')?.status?.conditions ?? []
  const odd = {
    type: 'Odd',
    status: 'True',
    reason: 'Reason,with_comma',
    lastTransitionTime: at[0]?.lastTransitionTime,
  }
  stage.patch(kinds.node, 'node-sick', { status: { conditions: [...at, odd] } }, 'status')
  await stage.pod('r', 'node-well-1')
  await stage.pod('stays', 'node-well-2')
  stage.delete(kinds.node, 'node-well-1')
  await stage.pass(minutes)
  for (const pod of ['p', 'q', 'r'])
    if (stage.podNow(pod) !== undefined && stage.isLeaving(pod)) await stage.end(pod)
  await stage.pass(minutes)
  return stage
}

test('OPS-101 no label value of a scrape has a comma, and every series is as the table says', async (t) => {
  const stage = await busy(t)
  const series = await scrape(stage)
  const values = series.flatMap(({ labels }) => [...labels.values()])
  assert.deepEqual(
    values.filter((value) => value.includes(',')),
    [],
  )
  const image = series.find(({ family }) => family === 'karpenter_nodeclaims_unhealthy_disrupted_total')
  assert.equal(image?.labels.get('image_id'), 'image-1;image-2')

  const rows = new Map(metricTable.map((row) => [row.name, row]))
  for (const { family, labels } of series) {
    const row = rows.get(family)
    if (row === undefined) {
      assert.match(family, /^(process|go|nodejs)_/)
      continue
    }
    const names = [...labels.keys()].filter((name) => name !== 'le' && name !== 'quantile')
    // Those of nodes and objects come on top.
    const isOpen = row.hasNodeLabels === true || family.startsWith('operator_')
    assert.deepEqual(
      (isOpen ? row.labels.filter((name) => names.includes(name)) : names).toSorted(),
      row.labels.toSorted(),
      family,
    )
  }
  const seen = new Set(series.map(({ family }) => family))
  for (const name of [
    'nodeclaims_created_total',
    'nodeclaims_disrupted_total',
    'nodeclaims_instance_termination_duration_seconds',
    'nodeclaims_terminated_total',
    'nodes_created_total',
    'nodes_drained_total',
    'nodes_lifetime_duration_seconds',
    'nodes_termination_duration_seconds',
    'pods_drained_total',
    'pods_eviction_requests_total',
    'pods_state',
    'scheduler_queue_depth',
    'voluntary_disruption_decisions_by_nodepool_total',
    'cluster_utilization_percent',
  ])
    assert.ok(seen.has(`karpenter_${name}`), name)
})
