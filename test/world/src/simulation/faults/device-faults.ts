/** Device drivers that crash: their ResourceSlices disappear for a while, and return with a new generation. */
import { kinds, type ResourceSlice } from '@tenon/api'
import { integerBetween } from '@tenon/runtime'
import type { World, WorldOptions } from '../../world.ts'
import type { Story } from '../story.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000

/** Adds drivers to nodes with GPUs; with faults, the drivers are slow. */
export function withDrivers<T extends Pick<WorldOptions, 'cloudSettings' | 'cluster'>>(
  { faults }: Story,
  options: T,
): T {
  const { cloudSettings, cluster } = options
  const deviceDelay = faults === 'none' ? ([1000, 4000] as const) : ([1000, 4 * minute] as const)
  return {
    ...options,
    cloudSettings: { ...cloudSettings, gpuDriver: true },
    cluster: { ...cluster, kubelets: { ...cluster?.kubelets, deviceDelay } },
  }
}

/** Decides once a minute whether a fault strikes. Call the result to stop; everything is published again then. */
export function playDeviceFaults(world: World, { weather, clock, log }: FaultDependencies): () => void {
  const { local } = world.cluster.server
  let isStopped = false
  const missing = new Set<() => void>()
  const step = (): void => {
    if (isStopped) return
    if (weather.strikes('driverCrash')) {
      const random = weather.source('driverCrash')
      const nodes = [...new Set(local.list(kinds.resourceSlice).flatMap(({ spec }) => spec.nodeName ?? []))]
      const node = nodes.toSorted((a, b) => (a < b ? -1 : 1))[random.uint32() % Math.max(1, nodes.length)]
      if (node !== undefined) {
        const ms = integerBetween(random, 5_000, 5 * minute)
        log.record('fault', `driverCrash ${node} ${ms}`)
        crash(node, ms)
      }
    }
    clock.after(minute, step)
  }
  const crash = (node: string, ms: number): void => {
    const slices = local.list(kinds.resourceSlice).filter(({ spec }) => spec.nodeName === node)
    for (const { metadata } of slices) local.delete(kinds.resourceSlice, undefined, metadata.name)
    const back = (): void => {
      if (!missing.delete(back)) return
      if (local.get(kinds.node, undefined, node) === undefined) return
      for (const slice of slices) publishAgain(slice)
    }
    missing.add(back)
    clock.after(ms, back)
  }
  const publishAgain = ({ apiVersion, kind, metadata, spec }: ResourceSlice): void => {
    const { name, ownerReferences } = metadata
    // The node's driver may have been faster, for example after the node registered again.
    if (local.get(kinds.resourceSlice, undefined, name) !== undefined) return
    const pool = { ...spec.pool, generation: spec.pool.generation + 1 }
    local.create(kinds.resourceSlice, {
      apiVersion,
      kind,
      metadata: { name, ...(ownerReferences && { ownerReferences }) },
      spec: { ...spec, pool },
    })
  }
  clock.after(minute, step)
  return () => {
    isStopped = true
    for (const back of missing) back()
  }
}
