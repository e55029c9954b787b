/** What metrics and events say of conditions, as someone who scrapes and lists sees it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { aKwokPool } from '../world.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

async function scrape(stage: Stage): Promise<string> {
  return await stage.operator.operator.metrics.registry.metrics()
}

/** Series of a metric, as scraped, whose labels include `wanted`. */
async function series(stage: Stage, name: string, wanted: Record<string, string> = {}): Promise<Series[]> {
  return (await scrape(stage))
    .split('\n')
    .flatMap((line): Series[] => {
      const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line)
      if (match?.[1] !== name) return []
      const pairs = [...(match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)]
      const labels = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]))
      return [{ name, labels, value: Number(match[3]) }]
    })
    .filter(({ labels }) => Object.entries(wanted).every(([key, value]) => labels[key] === value))
}

async function values(stage: Stage, name: string, wanted: Record<string, string> = {}): Promise<number[]> {
  return (await series(stage, name, wanted)).map(({ value }) => value)
}

const ofClaim = { karpenter_kwok_sh_kwoknodeclass: 'default', karpenter_sh_nodepool: 'default' }
const condition = 'operator_nodeclaim_status_condition'

/** Lets the instance of a claim be refused until `answer` is called. */
function refuseLaunches(stage: Stage): () => void {
  stage.cloud.onCreate = () => {
    throw new Error('no answer')
  }
  return () => {
    stage.cloud.onCreate = () => {}
  }
}

test('OPS-36 OPS-50 a condition that becomes True is counted and timed, and shows as an event', async (t) => {
  const stage = await Stage.open(t)
  const answer = refuseLaunches(stage)
  await stage.claim('a')
  await stage.pass(5 * seconds)
  const launched = { ...ofClaim, namespace: '', name: 'a', type: 'Launched' }
  const before = await series(stage, `${condition}_count`, launched)
  assert.deepEqual(
    before.map(({ labels, value }) => [labels['status'], labels['reason'], value]),
    [['Unknown', 'LaunchFailed', 1]],
  )
  assert.deepEqual(await values(stage, `${condition}_transitions_total`, { type: 'Launched' }), [])

  answer()
  await stage.pass(30 * seconds)
  assert.deepEqual(await series(stage, `${condition}_transitions_total`, { type: 'Launched' }), [
    {
      name: `${condition}_transitions_total`,
      labels: { ...ofClaim, type: 'Launched', status: 'True', reason: 'Launched' },
      value: 1,
    },
  ])
  const unknown = { ...ofClaim, type: 'Launched', status: 'Unknown' }
  assert.deepEqual(await values(stage, `${condition}_transition_seconds_count`, unknown), [1])
  const [lasted = 0] = await values(stage, `${condition}_transition_seconds_sum`, unknown)
  assert.ok(lasted >= 5 && lasted < 30, `Unknown for ${lasted} s`)
  const after = await series(stage, `${condition}_count`, launched)
  assert.deepEqual(
    after.map(({ labels, value }) => [labels['status'], labels['reason'], value]),
    [['True', 'Launched', 1]],
  )
  const [event, ...others] = stage.events('Launched')
  assert.deepEqual([event?.type, event?.object, others], ['Normal', 'NodeClaim/a', []])
  assert.match(event?.message ?? '', /Unknown to True/)
})

test('OPS-36 how long a condition has its status grows from scrape to scrape', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const launched = { name: 'a', type: 'Launched', status: 'True' }
  const [first = 0] = await values(stage, `${condition}_current_status_seconds`, launched)
  await stage.pass(60 * seconds)
  const [second = 0] = await values(stage, `${condition}_current_status_seconds`, launched)
  assert.equal(second - first, 60)
})

test('OPS-37 a claim that goes takes its series along, and how long it took is kept', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.ready('b')
  await stage.pod('app', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(20 * seconds)
  const terminating = 'operator_nodeclaim_termination_current_time_seconds'
  const [going] = await series(stage, terminating)
  assert.deepEqual(going?.labels, { ...ofClaim, namespace: '', name: 'a' })
  assert.ok(going.value >= 20 && going.value < 25, `going for ${going.value} s`)

  await stage.end('app')
  await stage.pass(60 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  for (const gauge of [`${condition}_count`, `${condition}_current_status_seconds`]) {
    assert.deepEqual(await series(stage, gauge, { name: 'a' }), [])
    assert.notDeepEqual(await series(stage, gauge, { name: 'b' }), [])
  }
  assert.deepEqual(await series(stage, terminating), [])
  assert.deepEqual(await values(stage, 'operator_nodeclaim_termination_duration_seconds_count'), [1])
  const [took = 0] = await values(stage, 'operator_nodeclaim_termination_duration_seconds_sum', ofClaim)
  assert.ok(took >= 20 && took < 90, `took ${took} s`)
  assert.deepEqual(await values(stage, 'operator_node_termination_duration_seconds_count'), [1])
})

test('the finalizers of what goes are told by its name, also after it has gone', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.deleteClaim('a')
  await stage.pass(30 * seconds)
  assert.deepEqual(
    stage
      .events('Finalized')
      .map(({ type, object }) => `${type} ${object}`)
      .toSorted(),
    ['Normal Node/node-a', 'Normal NodeClaim/a'],
  )
  for (const { message } of stage.events('Finalized')) assert.match(message, /karpenter\.sh\/termination/)
})

test('the families of older dashboards count claims and pools too, nodes not', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  for (const name of ['status_condition_count', 'status_condition_current_status_seconds']) {
    const [twin] = await series(stage, `operator_${name}`, { kind: 'NodeClaim', name: 'a', type: 'Launched' })
    assert.deepEqual(twin?.labels, {
      group: 'karpenter.sh',
      kind: 'NodeClaim',
      namespace: '',
      name: 'a',
      type: 'Launched',
      status: 'True',
      reason: 'Launched',
    })
    assert.notDeepEqual(await series(stage, `operator_${name}`, { kind: 'NodePool', name: 'default' }), [])
    assert.deepEqual(await series(stage, `operator_${name}`, { kind: 'Node' }), [])
  }
  const registered = { kind: 'NodeClaim', type: 'Registered', status: 'True' }
  assert.deepEqual(await values(stage, 'operator_status_condition_transitions_total', registered), [1])
  const before = { kind: 'NodeClaim', type: 'Registered', status: 'Unknown' }
  const seen = await series(stage, 'operator_status_condition_transition_seconds_bucket', before)
  assert.deepEqual([seen[0]?.labels['le'], seen.at(-1)?.labels['le']], ['0.005', '+Inf'])
  const own = await series(stage, `${condition}_transition_seconds_bucket`, { type: 'Registered' })
  assert.deepEqual([own[0]?.labels['le'], own.at(-2)?.labels['le']], ['0.5', '8192'])
})

test('series move along with the labels of their object, and with the reason of a condition', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const ready = { name: 'node-a', type: 'Ready' }
  const labelled = async () =>
    (await series(stage, 'operator_node_status_condition_count', ready)).map(({ labels }) => [
      labels['karpenter_sh_initialized'],
      labels['reason'],
    ])
  assert.deepEqual(await labelled(), [['true', 'Kubelet']])
  stage.patch(kinds.node, 'node-a', { metadata: { labels: { 'karpenter.sh/initialized': 'no' } } })
  await stage.report('node-a', 'False')
  assert.deepEqual(await labelled(), [['no', 'Kubelet']])
  assert.deepEqual(
    await values(stage, 'operator_node_status_condition_transitions_total', {
      type: 'Ready',
      status: 'False',
    }),
    [1],
  )
})

test('heartbeats cost no look at a node, and with reduced detail no node has series of its own', async (t) => {
  const stage = await Stage.open(t, { settings: { metricsDetail: 'reduced' } })
  await stage.ready('a')
  const looks = async () =>
    await values(stage, 'controller_runtime_reconcile_total', {
      controller: 'operatorpkg.node.status',
      result: 'success',
    })
  const before = await looks()
  const [ready] = stage.nodeNow('node-a')?.status?.conditions ?? []
  for (const lastHeartbeatTime of ['2026-01-01T01:00:00Z', '2026-01-01T01:00:10Z']) {
    stage.patch(kinds.node, 'node-a', { status: { conditions: [{ ...ready, lastHeartbeatTime }] } }, 'status')
    await stage.pass(1000)
  }
  assert.deepEqual(await looks(), before)
  await stage.report('node-a', 'False')
  assert.notDeepEqual(await looks(), before)

  for (const name of ['operator_node', 'operator_nodeclaim', 'operator'])
    for (const gauge of ['count', 'current_status_seconds'])
      assert.deepEqual(await series(stage, `${name}_status_condition_${gauge}`), [])
  assert.notDeepEqual(await series(stage, 'operator_nodepool_status_condition_count'), [])
  const notReady = { type: 'Ready', status: 'False' }
  assert.deepEqual(await values(stage, 'operator_node_status_condition_transitions_total', notReady), [1])
})

test('OPS-95 after a restart, what is True counts again, and nothing else does', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a')
  assert.deepEqual(
    [stage.state('a', 'Launched'), stage.condition('a', 'Registered')?.status],
    ['True/Launched', 'Unknown'],
  )
  await stage.pass(minutes)
  const eventsBefore = stage.events('Launched').length + stage.events('Registered').length
  await stage.restart()
  await stage.pass(10 * seconds)
  assert.deepEqual(
    (await series(stage, `${condition}_transitions_total`)).map(({ labels, value }) => [
      labels['type'],
      labels['status'],
      value,
    ]),
    [['Launched', 'True', 1]],
  )
  assert.deepEqual(await series(stage, `${condition}_transition_seconds_count`), [])
  assert.equal(stage.events('Launched').length + stage.events('Registered').length, eventsBefore)
})

test('OPS-96 a pool of another provider has conditions to show and is left alone', async (t) => {
  const stage = await Stage.open(t)
  const pool = aKwokPool('foreign', { limits: { cpu: '10' } })
  const nodeClassRef = { group: 'other.io', kind: 'OtherClass', name: 'x' }
  const template = { ...pool.spec.template, spec: { ...pool.spec.template.spec, nodeClassRef } }
  stage.world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template } })
  await stage.pass(30 * seconds)
  const shown = await series(stage, 'operator_nodepool_status_condition_count', { name: 'foreign' })
  assert.deepEqual(shown.map(({ labels }) => `${labels['type']} ${labels['status']}`).toSorted(), [
    'NodeClassReady Unknown',
    'Ready Unknown',
    'ValidationSucceeded Unknown',
  ])
  const ofPool = (await scrape(stage)).split('\n').filter((line) => line.startsWith('karpenter_nodepools_'))
  assert.notDeepEqual(
    ofPool.filter((line) => line.includes('nodepool="default"')),
    [],
  )
  assert.deepEqual(
    ofPool.filter((line) => line.includes('nodepool="foreign"')),
    [],
  )
  assert.deepEqual(
    [stage.poolNow('foreign')?.status, stage.poolNow('foreign')?.metadata.annotations],
    [undefined, undefined],
  )
})

test('OPS-38 without observability there is nothing of 9.2 and 9.3, and all of 9.1', async (t) => {
  const stage = await Stage.open(t, { settings: { clusterStateObservability: false } })
  await stage.ready('a')
  await stage.deleteClaim('a')
  await stage.pass(30 * seconds)
  const families = new Set(
    [...(await scrape(stage)).matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name),
  )
  for (const name of families) {
    assert.doesNotMatch(name, /^operator_/)
    assert.ok(!observability.has(name), name)
  }
  for (const name of core) assert.ok(families.has(`karpenter_${name}`), name)
  for (const reason of ['Launched', 'Registered', 'Initialized', 'Ready', 'Finalized'])
    assert.deepEqual(stage.events(reason), [])
})

/** Operations.md 9.2. */
const observability = new Set(
  [
    'nodepools_limit nodepools_usage nodepools_cost_total nodes_allocatable nodes_system_overhead',
    'nodes_total_pod_requests nodes_total_pod_limits nodes_total_daemon_requests nodes_total_daemon_limits',
    'nodes_current_lifetime_seconds cluster_utilization_percent pods_state pods_startup_duration_seconds',
    'pods_unstarted_time_seconds pods_bound_duration_seconds pods_unbound_time_seconds',
    'pods_provisioning_bound_duration_seconds pods_provisioning_startup_duration_seconds',
    'pods_provisioning_unbound_time_seconds pods_provisioning_unstarted_time_seconds',
    'pods_provisioning_scheduling_undecided_time_seconds',
  ]
    .flatMap((line) => line.split(' '))
    .map((name) => `karpenter_${name}`),
)

/** Operations.md 9.1. */
const core = [
  'build_info nodeclaims_created_total nodeclaims_terminated_total nodeclaims_disrupted_total',
  'pods_disruption_initiated_total nodes_created_total nodes_terminated_total nodes_drained_total',
  'nodes_termination_duration_seconds nodes_lifetime_duration_seconds',
  'nodeclaims_instance_termination_duration_seconds nodeclaims_termination_duration_seconds',
  'nodeclaims_unhealthy_disrupted_total pods_eviction_requests_total pods_drained_total',
  'pods_scheduling_decision_duration_seconds scheduler_scheduling_duration_seconds scheduler_queue_depth',
  'scheduler_unfinished_work_seconds scheduler_ignored_pods_count scheduler_unschedulable_pods_count',
  'scheduler_pending_pods_by_effective_zone_count voluntary_disruption_decision_evaluation_duration_seconds',
  'voluntary_disruption_decisions_total voluntary_disruption_decisions_by_nodepool_total',
  'voluntary_disruption_eligible_nodes voluntary_disruption_consolidation_timeouts_total',
  'voluntary_disruption_failed_validations_total voluntary_disruption_queue_failures_total',
  'nodepools_allowed_disruptions nodepools_nodes_consuming_budgets consolidation_moves_total',
  'consolidation_score cluster_state_node_count cluster_state_synced cluster_state_unsynced_time_seconds',
  'nodepools_cost_tracker_errors_total cloudprovider_duration_seconds cloudprovider_errors_total',
].flatMap((line) => line.split(' '))
