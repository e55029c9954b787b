import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

/** Lines of samples that begin so. */
async function samples(metrics: ReturnType<typeof createMetrics>, start: string): Promise<readonly string[]> {
  return (await metrics.registry.metrics())
    .split('\n')
    .filter((line) => line.startsWith(`cluster_autoscaler_${start}`))
}

test('series that alerts are built on are there at 0 from the start', async () => {
  const metrics = createMetrics({ emitPerNodeGroup: false })
  const text = await metrics.registry.metrics()
  for (const line of [
    'errors_total{type="cloudProviderError"} 0',
    'errors_total{type="unexpectedScaleDownStateError"} 0',
    'failed_scale_ups_total{reason="timeout",gpu_resource_name="",gpu_name="",dra_drivers=""} 0',
    'failed_node_creations_total{reason="apiCallError"} 0',
    'scaled_down_nodes_total{reason="unready",gpu_resource_name="",gpu_name="",dra_drivers=""} 0',
    'evicted_pods_total{eviction_result="failed"} 0',
    'skipped_scale_events_count{direction="down",reason="MemoryResourceLimit"} 0',
    'old_unregistered_nodes_removed_count 0',
    'cluster_safe_to_autoscale 0',
    'inconsistent_instances_migs_count 0',
  ])
    assert.ok(text.includes(`\ncluster_autoscaler_${line}\n`), line)
})

test('every family of the sheet is there, with its type', async () => {
  const text = await createMetrics({ emitPerNodeGroup: true }).registry.metrics()
  const types = new Map(
    Array.from(text.matchAll(/^# TYPE cluster_autoscaler_(\S+) (\S+)$/gm), ([, name = '', type = '']) => [
      name,
      type,
    ]),
  )
  const count = (type: string) => [...types.values()].filter((each) => each === type).length
  assert.deepEqual([count('gauge'), count('counter'), count('histogram'), count('summary')], [26, 13, 3, 1])
  for (const name of ['node_group_backoff_status', 'dra_node_template_resources_mismatch', 'last_activity'])
    assert.equal(types.get(name), 'gauge')
})

test('figures are set, added, observed and forgotten', async () => {
  const metrics = createMetrics({ emitPerNodeGroup: false })
  metrics.set('nodes_count', 4, { state: 'ready' })
  metrics.set('unremovable_nodes_count', 2, { reason: 'BlockedByPod' })
  metrics.clear('unremovable_nodes_count')
  metrics.set('unremovable_nodes_count', 1, { reason: 'NotAutoscaled' })
  metrics.add('scaled_up_nodes_total', 3, { gpu_name: 'generic' })
  metrics.add('scaled_up_nodes_total', 1, { gpu_name: 'generic' })
  assert.deepEqual(await samples(metrics, 'nodes_count'), ['cluster_autoscaler_nodes_count{state="ready"} 4'])
  assert.deepEqual(await samples(metrics, 'unremovable_nodes_count'), [
    'cluster_autoscaler_unremovable_nodes_count{reason="NotAutoscaled"} 1',
  ])
  assert.deepEqual(await samples(metrics, 'scaled_up_nodes_total'), [
    'cluster_autoscaler_scaled_up_nodes_total{gpu_resource_name="",gpu_name="generic",dra_drivers=""} 4',
  ])
})

test('times of functions are in a histogram from 0.1 to 1800 s and in a summary', async () => {
  const metrics = createMetrics({ emitPerNodeGroup: false })
  metrics.observe('function_duration_seconds', 0.5, { function: 'main' })
  const buckets = await samples(metrics, 'function_duration_seconds_bucket')
  assert.equal(buckets.length, 151)
  assert.match(buckets[0] ?? '', /le="0\.1",function="main"\} 0$/)
  assert.match(buckets[149] ?? '', /le="1800",function="main"\} 1$/)
  assert.match(
    (await samples(metrics, 'function_duration_quantile_seconds')).join('\n'),
    /quantile="0\.9".* 0\.5/,
  )
  metrics.observe('binpacking_heterogeneity', 3, {
    instance_type: 'x',
    cpu_count: '4',
    namespace_count: '6-10',
  })
  assert.equal((await samples(metrics, 'binpacking_heterogeneity_bucket')).length, 7)
})

test('groups have metrics of their own only when asked for', async () => {
  for (const emitPerNodeGroup of [false, true]) {
    const metrics = createMetrics({ emitPerNodeGroup })
    metrics.set('node_group_target_count', 3, { node_group: 'pool' })
    assert.equal(
      (await samples(metrics, 'node_group')).some((line) => line.endsWith(' 3')),
      emitPerNodeGroup,
    )
  }
})

test('the alerts of the chart look at metrics and series that there are', async () => {
  const values = new URL('../../../../charts/cluster-autoscaler/values.yaml', import.meta.url)
  const asked = readFileSync(values, 'utf8').matchAll(/(cluster_autoscaler_\w+)(?:\{(\w+)="(\w+)"\})?/g)
  const metrics = createMetrics({ emitPerNodeGroup: true })
  metrics.set('last_activity', 1, { activity: 'mainSuccessful' })
  metrics.set('unschedulable_pods_count', 1, { type: 'unschedulable' })
  const text = await metrics.registry.metrics()
  const all = [...asked]
  assert.equal(all.length, 5)
  for (const [, name = '', label, value] of all) {
    assert.ok(text.includes(`# TYPE ${name} `), name)
    if (label !== undefined)
      assert.ok(text.includes(`${name}{${label}="${value}"} `), `${name} ${label}=${value}`)
  }
})
