import { type Pod, resizedRequests, scoredBalance, servesImplicitNames } from '@tenon/api'
import type { Random } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import { ClusterIndex, DeviceIndex, PodCycle, PodReader, SpreadDomains, VolumeIndex } from '@tenon/filters'
import { observeCluster } from './cluster/cluster-observer.ts'
import { DefaultSpread } from './filters/default-spread.ts'
import { Nominations } from './queue/nominations.ts'
import { Placer } from './placement.ts'

/** What the scheduler makes of one pod, without binding it. */
export interface Verdict {
  /** Names of the nodes that would take the pod, sorted. */
  readonly nodes: readonly string[]
  /** Those of them that it would choose from, by their scores. */
  readonly best: readonly string[]
  /** Why other nodes would not, by name. Holds all of them when no node takes the pod. */
  readonly refusals: Readonly<Record<string, string>>
}

/**
 * Asks the scheduler about pods of a cluster at rest, each by itself. Below 100 nodes all are looked at, above a sample.
 * @param minor version of Kubernetes whose scheduler answers; by default the newest.
 */
export function schedulingVerdicts(
  api: LocalApi,
  random: Random,
  pods: readonly Pod[],
  minor?: number,
): Verdict[] {
  const reader = new PodReader(resizedRequests(minor))
  const index = new ClusterIndex(reader.table)
  const volumes = new VolumeIndex()
  const devices = new DeviceIndex((isGateOn) => servesImplicitNames(minor, isGateOn))
  const nominations = new Nominations()
  const defaultSpread = new DefaultSpread(api)
  const view = { index, volumes, devices, spreadDomains: new SpreadDomains(index) }
  const stop = observeCluster(api, view, {
    pod: (_, pod) => {
      const phase = pod?.status?.phase
      if (pod === undefined || phase === 'Succeeded' || phase === 'Failed') return
      const nodeName = pod.spec.nodeName ?? ''
      const nominated = pod.status?.nominatedNodeName ?? ''
      if (nodeName !== '') index.assign(reader.factsOf(pod), nodeName)
      else if (nominated !== '') nominations.set(reader.factsOf(pod), nominated)
    },
    changed: () => {},
  })
  const placer = new Placer(nominations, random, 100, defaultSpread, scoredBalance(minor))
  const verdicts = pods.map((pod): Verdict => {
    const cycle = new PodCycle(reader.factsOf(pod), view)
    const { feasible, rejections } = placer.find(cycle)
    return {
      nodes: feasible.map(({ name }) => name).toSorted(),
      best: placer.best(cycle, feasible).map(({ name }) => name),
      refusals: Object.fromEntries(
        [...rejections].map(([{ name }, { reasons }]) => [name, reasons.join(', ')]),
      ),
    }
  })
  stop()
  defaultSpread.stop()
  return verdicts
}
