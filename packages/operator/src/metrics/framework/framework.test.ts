/** Series that dashboards of controller-runtime and client-go read, as a scrape shows them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createController, createKubeClient, done } from '@tenon/kube'
import { silentLogger, type Transport, VirtualClock } from '@tenon/runtime'
import { Registry } from 'prom-client'
import { FrameworkMetrics, RequestMetrics } from './framework.ts'

/** Lines of a scrape that begin with one of these, in order. */
async function lines(registry: Registry, ...beginnings: readonly string[]): Promise<readonly string[]> {
  return (await registry.metrics())
    .split('\n')
    .filter((line) => beginnings.some((beginning) => line.startsWith(beginning)))
}

test('a controller is counted by how its reconciles end, and its queue is shown as it is', async () => {
  const clock = new VirtualClock()
  const registry = new Registry()
  const metrics = new FrameworkMetrics(registry, clock)
  const answers = {
    well: () => done,
    again: () => ({ kind: 'backoff' }) as const,
    late: () => ({ kind: 'after', delayMs: 1e9 }) as const,
    down: () => {
      throw new Error('down')
    },
    bug: () => {
      throw new TypeError('bug')
    },
  }
  const controller = createController(
    {
      name: 'test',
      concurrency: 2,
      backoff: { baseMs: 1e9, capMs: 1e9 },
      reconcile: async (key) => {
        await clock.sleep(200)
        return answers[key as keyof typeof answers]()
      },
    },
    { clock, logger: silentLogger, metrics },
  )
  assert.deepEqual(await lines(registry, 'controller_runtime_reconcile_total', 'workqueue_depth'), [
    'controller_runtime_reconcile_total{controller="test",result="success"} 0',
    'controller_runtime_reconcile_total{controller="test",result="error"} 0',
    'controller_runtime_reconcile_total{controller="test",result="requeue"} 0',
    'controller_runtime_reconcile_total{controller="test",result="requeue_after"} 0',
    'workqueue_depth{name="test",controller="test",priority="0"} 0',
  ])
  controller.start()
  for (const key of Object.keys(answers)) controller.enqueue(key)
  await clock.advance(300)
  const queue = 'name="test",controller="test"'
  assert.deepEqual(
    await lines(
      registry,
      'controller_runtime_max_concurrent_reconciles{',
      'controller_runtime_active_workers{',
      'workqueue_depth{',
      'workqueue_unfinished_work_seconds{',
      'workqueue_longest_running_processor_seconds{',
    ),
    [
      'controller_runtime_max_concurrent_reconciles{controller="test"} 2',
      'controller_runtime_active_workers{controller="test"} 2',
      `workqueue_depth{${queue},priority="0"} 1`,
      `workqueue_unfinished_work_seconds{${queue}} 0.2`,
      `workqueue_longest_running_processor_seconds{${queue}} 0.1`,
    ],
  )
  await clock.advance(1000)
  assert.deepEqual(
    await lines(registry, 'controller_runtime_reconcile', 'controller_runtime_terminal').then((all) =>
      all.filter((line) => !line.includes('_seconds')),
    ),
    [
      'controller_runtime_reconcile_total{controller="test",result="success"} 1',
      'controller_runtime_reconcile_total{controller="test",result="error"} 2',
      'controller_runtime_reconcile_total{controller="test",result="requeue"} 1',
      'controller_runtime_reconcile_total{controller="test",result="requeue_after"} 1',
      'controller_runtime_reconcile_errors_total{controller="test"} 2',
      'controller_runtime_reconcile_panics_total{controller="test"} 1',
      'controller_runtime_terminal_reconcile_errors_total{controller="test"} 0',
      'controller_runtime_reconcile_timeouts_total{controller="test"} 0',
    ],
  )
  assert.deepEqual(
    await lines(
      registry,
      'controller_runtime_reconcile_time_seconds_count',
      'workqueue_adds_total{',
      'workqueue_retries_total{',
      'workqueue_queue_duration_seconds_sum{',
      'workqueue_work_duration_seconds_count{',
    ),
    [
      'controller_runtime_reconcile_time_seconds_count{controller="test"} 5',
      `workqueue_adds_total{${queue}} 5`,
      `workqueue_retries_total{${queue}} 3`,
      `workqueue_queue_duration_seconds_sum{${queue}} 0.8`,
      `workqueue_work_duration_seconds_count{${queue}} 5`,
    ],
  )
})

test('histograms have the buckets that dashboards expect', async () => {
  const clock = new VirtualClock()
  const registry = new Registry()
  const metrics = new FrameworkMetrics(registry, clock)
  metrics.started('test', 1)
  metrics.finished('test', 'success', 1)
  const bounds = async (name: string) =>
    (await lines(registry, `${name}_bucket`)).map((line) => /le="([^"]+)"/.exec(line)?.[1])
  const queue = await bounds('workqueue_queue_duration_seconds')
  assert.deepEqual([queue.length, Number(queue[0]), queue.at(-2)], [13, 1e-8, '1000'])
  const reconcile = await bounds('controller_runtime_reconcile_time_seconds')
  assert.deepEqual([reconcile[0], reconcile.at(-2)], ['0.005', '60'])
})

test('a process shows whether it leads, and nothing when nobody is elected', async () => {
  const registry = new Registry()
  const metrics = new FrameworkMetrics(registry, new VirtualClock())
  assert.deepEqual(await lines(registry, 'leader_election_master_status'), [])
  metrics.leads('lease', false)
  assert.deepEqual(await lines(registry, 'leader_election_master_status'), [
    'leader_election_master_status{name="lease"} 0',
  ])
  metrics.leads('lease', true)
  assert.deepEqual(await lines(registry, 'leader_election_master_status'), [
    'leader_election_master_status{name="lease"} 1',
  ])
})

test('requests are counted by answer, and timed by what they were about', async () => {
  const clock = new VirtualClock()
  const registry = new Registry()
  const { requested } = new RequestMetrics(registry)
  const ask = (method: string, path: string, status = 200) => {
    requested({ method, path, status, durationMs: 2 })
  }
  ask('GET', '/api/v1/nodes?limit=500')
  ask('GET', '/api/v1/namespaces')
  ask('GET', '/api/v1/namespaces/default')
  ask('GET', '/api/v1/namespaces/default/pods?labelSelector=a')
  ask('POST', '/api/v1/namespaces/default/pods/p/eviction', 429)
  ask('PATCH', '/apis/karpenter.sh/v1/nodeclaims/a/status')
  ask('PUT', '/apis/karpenter.sh/v1/nodeclaims/a')
  ask('DELETE', '/apis/karpenter.sh/v1/nodeclaims/a', 0)
  ask('GET', '/api/v1/pods?watch=1&resourceVersion=5')
  ask('GET', '/version')
  assert.deepEqual(await lines(registry, 'client_go_request_total{'), [
    'client_go_request_total{code="200",method="GET"} 6',
    'client_go_request_total{code="429",method="POST"} 1',
    'client_go_request_total{code="200",method="PATCH"} 1',
    'client_go_request_total{code="200",method="PUT"} 1',
    'client_go_request_total{code="<error>",method="DELETE"} 1',
  ])
  const timed = await lines(registry, 'client_go_request_duration_seconds_count')
  const about = (verb: string, group: string, version: string, kind: string, subresource = '') =>
    `client_go_request_duration_seconds_count{verb="${verb}",group="${group}",version="${version}",kind="${kind}",subresource="${subresource}"} 1`
  assert.deepEqual(timed, [
    about('LIST', '', 'v1', 'nodes'),
    about('LIST', '', 'v1', 'namespaces'),
    about('GET', '', 'v1', 'namespaces'),
    about('LIST', '', 'v1', 'pods'),
    about('CREATE', '', 'v1', 'pods', 'eviction'),
    about('PATCH', 'karpenter.sh', 'v1', 'nodeclaims', 'status'),
    about('UPDATE', 'karpenter.sh', 'v1', 'nodeclaims'),
    about('DELETE', 'karpenter.sh', 'v1', 'nodeclaims'),
  ])
  const transport: Transport = { send: () => Promise.reject(new Error('refused')) }
  const client = createKubeClient({ transport, clock, onRequest: requested })
  await assert.rejects(client.serverVersion())
  assert.equal((await lines(registry, 'client_go_request_total{code="<error>",method="GET"} 1')).length, 1)
})
