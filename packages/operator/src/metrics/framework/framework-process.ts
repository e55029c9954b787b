/**
 * Resource usage of this process, under the names that dashboards for Karpenter use (operations.md 9.4). Metrics `go_*` have
 * the closest equivalent.
 */
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { getActiveResourcesInfo, memoryUsage, versions } from 'node:process'
import { collectDefaultMetrics, Gauge, type Registry, Summary } from 'prom-client'

const seldomMs = 86_400_000

/** Adds `process_*`, `nodejs_*` and `go_*`; call once in a process. */
export function addProcessMetrics(registry: Registry): void {
  // By default prom-client samples the event loop lag every ten milliseconds, which is most of the CPU on a quiet cluster.
  // The lag at a scrape is measured anyway.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: seldomMs })
  for (const each of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'])
    registry.removeSingleMetric(`nodejs_eventloop_lag_${each}_seconds`)
  const registers = [registry]
  const gauge = (name: string, help: string, value: () => number) => {
    const added = new Gauge({
      name,
      help,
      registers,
      collect: () => {
        added.set(value())
      },
    })
  }
  new Gauge({ name: 'go_info', help: 'Version of the runtime', labelNames: ['version'], registers }).set(
    { version: `node${versions.node}` },
    1,
  )
  gauge('go_goroutines', 'Timers, sockets and other things that the event loop waits for', () => {
    return getActiveResourcesInfo().length
  })
  gauge('go_memstats_alloc_bytes', 'Bytes of objects in use', () => memoryUsage().heapUsed)
  gauge('go_memstats_heap_alloc_bytes', 'Bytes of objects in use', () => memoryUsage().heapUsed)
  gauge('go_memstats_heap_inuse_bytes', 'Bytes of objects in use', () => memoryUsage().heapUsed)
  gauge(
    'go_memstats_heap_sys_bytes',
    'Bytes of memory for objects, used or not',
    () => memoryUsage().heapTotal,
  )
  gauge('go_memstats_sys_bytes', 'Bytes of memory of this process', () => memoryUsage().rss)
  addGarbageCollection(registry)
}

/** Memory above which this process ends. */
export interface MemoryLimit {
  /** `container`: the kernel ends a process above it. `heap`: the runtime ends itself. */
  readonly name: 'container' | 'heap'
  readonly limitBytes: number
  /** What counts for the limit now. */
  readonly usedBytes: () => number
}

/** Adds `tenon_memory_limit_used_ratio` (scale.md 2). */
export function addMemoryLimits(registry: Registry, limits: readonly MemoryLimit[]): void {
  const gauge = new Gauge({
    name: 'tenon_memory_limit_used_ratio',
    help: 'Share of a memory limit in use; at 1 the process ends. docs/sizing.md says how much a cluster needs',
    labelNames: ['limit'],
    registers: [registry],
    collect: () => {
      for (const { name, limitBytes, usedBytes } of limits)
        gauge.set({ limit: name }, usedBytes() / limitBytes)
    },
  })
}

function addGarbageCollection(registry: Registry): void {
  const pauses = new Summary({
    name: 'go_gc_duration_seconds',
    help: 'Duration of a full garbage collection',
    percentiles: [0, 0.25, 0.5, 0.75, 1],
    maxAgeSeconds: 600,
    ageBuckets: 5,
    registers: [registry],
  })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as { readonly detail?: { readonly kind?: number } }
      if (detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR) pauses.observe(entry.duration / 1000)
    }
  }).observe({ entryTypes: ['gc'] })
}
