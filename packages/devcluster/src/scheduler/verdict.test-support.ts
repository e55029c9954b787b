import type { Pod } from '@tenon/api'
import type { Random } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import {
  ClusterIndex,
  DeviceIndex,
  PodCycle,
  podFacts,
  ResourceTable,
  SpreadDomains,
  VolumeIndex,
} from '@tenon/filters'
import { observeCluster } from './cluster/cluster-observer.ts'
import { DefaultSpread } from './filters/default-spread.ts'
import { Nominations } from './queue/nominations.ts'
import { Placer } from './placement.ts'

/** What the scheduler makes of one pod, without binding it. */
export interface Verdict {
  /** Names of the nodes that would take the pod, sorted. */
  readonly nodes: readonly string[]
  /** Why other nodes would not, by name. Holds all of them when no node takes the pod. */
  readonly refusals: Readonly<Record<string, string>>
}

/**
 * Asks the scheduler's filters about pods of a cluster at rest, each by itself. Below 100 nodes all
 * are looked at, above a sample.
 */
export function schedulingVerdicts(api: LocalApi, random: Random, pods: readonly Pod[]): Verdict[] {
  const index = new ClusterIndex(new ResourceTable())
  const volumes = new VolumeIndex()
  const devices = new DeviceIndex()
  const defaultSpread = new DefaultSpread(api)
  const view = { index, volumes, devices, spreadDomains: new SpreadDomains(index) }
  const stop = observeCluster(api, view, {
    pod: (_, pod) => {
      const phase = pod?.status?.phase
      const nodeName = pod?.spec.nodeName ?? ''
      if (pod === undefined || nodeName === '' || phase === 'Succeeded' || phase === 'Failed') return
      index.assign(podFacts(pod, index.table), nodeName)
    },
    changed: () => {},
  })
  const placer = new Placer(new Nominations(), random, 100, defaultSpread)
  const verdicts = pods.map((pod): Verdict => {
    const { feasible, rejections } = placer.find(new PodCycle(podFacts(pod, index.table), view))
    return {
      nodes: feasible.map(({ name }) => name).toSorted(),
      refusals: Object.fromEntries(
        [...rejections].map(([{ name }, { reasons }]) => [name, reasons.join(', ')]),
      ),
    }
  })
  stop()
  defaultSpread.stop()
  return verdicts
}
