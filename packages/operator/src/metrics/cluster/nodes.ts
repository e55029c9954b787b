/** `metrics.node`: what nodes have, what is used of it, and how old they are (operations.md 9.2). */
import {
  accumulate,
  type Container,
  difference,
  ownValue,
  parseResources,
  type Pod,
  podRequests,
  type Resources,
} from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Turns } from '@tenon/runtime'
import { sliceMs } from '../../slice.ts'
import {
  type ClusterMetrics,
  type NodeFamilies,
  nodeLabelValues,
  resourceLabel,
  shownAmount,
} from './cluster-metrics.ts'
import type { KeptSeries } from '../gauges.ts'
import { isLifecycleChange } from '../../state/nodes/node-changes.ts'
import { isDaemonPod, isTerminal } from '../../state/pods/pods.ts'
import { isTracked, joined, labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { SingletonSpec } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'claimOf' | 'isWellFormed' | 'nodeOf' | 'parsed' | 'pods' | 'podsOn'>
  readonly clock: Clock
  readonly turns: Turns
  readonly metrics: Pick<ClusterMetrics, 'nodes' | 'utilization'>
}

const periodMs = 5000

/** Share of one node in the utilization of the cluster. */
interface Share {
  readonly allocatable: Resources
  readonly requests: Resources
}

/** Recomputes nodes that changed, or whose pods did. */
export class NodeMetrics implements SingletonSpec {
  readonly name = 'metrics.node'
  readonly #deps: Dependencies
  /** By name. */
  readonly #changed = new Set<string>()
  readonly #shares = new Map<string, Share>()
  #utilized: ReadonlySet<string> = new Set()
  /** Memo by containers, which cached pods of one workload share. */
  readonly #podLimits = new WeakMap<readonly Container[], Resources>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    const { caches, state } = deps
    caches.nodes.onChange(({ object }) => {
      this.#changed.add(object.metadata.name)
    })
    caches.nodeClaims.onChange((change) => {
      const node = isLifecycleChange(change) ? state.nodeOf(change.object) : undefined
      if (node !== undefined) this.#changed.add(node.metadata.name)
    })
    caches.pods.onChange((change) => {
      if (state.pods.takesTheSame(change)) return
      this.#podChanged(change.object)
      if (change.kind === 'updated') this.#podChanged(change.old)
    })
  }

  async run(): Promise<ReconcileResult> {
    if (this.#changed.size > 0) {
      await inSlices(this.#refresh(), { ...this.#deps, sliceMs })
      this.#showUtilization()
    }
    return { kind: 'after', delayMs: periodMs }
  }

  #podChanged({ spec }: Pod): void {
    const { nodeName = '' } = (spec as Partial<Pod['spec']> | null | undefined) ?? {}
    if (nodeName !== '') this.#changed.add(nodeName)
  }

  *#refresh(): Generator<undefined, void, undefined> {
    for (const name of this.#changed) {
      this.#changed.delete(name)
      this.#refreshOne(name)
      yield
    }
  }

  #refreshOne(name: string): void {
    const { caches, state } = this.#deps
    const node = caches.nodes.get({ name })
    if (node === undefined || !isTracked(node)) {
      this.#shares.delete(name)
      for (const gauge of gaugesOf(this.#deps.metrics.nodes)) gauge.drop(name)
      return
    }
    const allocatable = state.parsed(node.status?.allocatable)
    const { requests, daemonRequests } = state.pods.useOf(name)
    this.#shares.set(name, { allocatable, requests })
    const families = this.#deps.metrics.nodes
    if (families === undefined) return
    const stateNode = joined(node, state.claimOf(node), '', false)
    const shared = this.#labelsOf(stateNode, families)
    const limits = this.#limitsOn(name)
    const shown = [
      [families.allocatable, allocatable],
      [families.systemOverhead, difference(state.parsed(node.status?.capacity), allocatable)],
      [families.podRequests, requests],
      [families.podLimits, limits.all],
      [families.daemonRequests, daemonRequests],
      [families.daemonLimits, limits.daemons],
    ] as const
    for (const [gauge, amounts] of shown) gauge.show(name, seriesOf(amounts, shared))
    const sinceMs = Date.parse(node.metadata.creationTimestamp ?? '')
    families.currentLifetime.show(
      name,
      Number.isNaN(sinceMs) ? [] : [{ labels: {}, shared, value: { sinceMs } }],
    )
  }

  #labelsOf(stateNode: StateNode, { labelKeys }: NodeFamilies): Readonly<Record<string, string>> {
    const { node, claim } = stateNode
    return nodeLabelValues(labelKeys, {
      name: node?.metadata.name ?? '',
      phase: node?.status?.phase ?? '',
      isManaged: claim !== undefined,
      labels: labelsOf(stateNode),
    })
  }

  #limitsOn(name: string): { readonly all: Resources; readonly daemons: Resources } {
    const { state } = this.#deps
    const all: Record<string, number> = {}
    const daemons: Record<string, number> = {}
    for (const pod of state.podsOn(name)) {
      if (!state.isWellFormed(pod) || isTerminal(pod)) continue
      const limits = this.#limitsOf(pod)
      accumulate(all, limits)
      if (isDaemonPod(pod)) accumulate(daemons, limits)
    }
    return { all, daemons }
  }

  #limitsOf(pod: Pod): Resources {
    const { containers } = pod.spec
    const limits = this.#podLimits.get(containers) ?? podLimits(pod)
    this.#podLimits.set(containers, limits)
    return limits
  }

  #showUtilization(): void {
    const allocatable: Record<string, number> = {}
    const requests: Record<string, number> = {}
    for (const share of this.#shares.values()) {
      accumulate(allocatable, share.allocatable)
      accumulate(requests, share.requests)
    }
    const { utilization } = this.#deps.metrics
    const shown = Object.entries(allocatable).filter(([, amount]) => amount > 0)
    const names = new Set(shown.map(([name]) => name))
    for (const name of this.#utilized)
      if (!names.has(name)) utilization.remove({ resource_type: resourceLabel(name) })
    for (const [name, amount] of shown)
      utilization.set(
        { resource_type: resourceLabel(name) },
        (100 * (ownValue(requests, name) ?? 0)) / amount,
      )
    this.#utilized = names
  }
}

function gaugesOf(families: NodeFamilies | undefined) {
  if (families === undefined) return []
  const { labelKeys: _, ...gauges } = families
  return Object.values(gauges)
}

function seriesOf(amounts: Resources, shared: Readonly<Record<string, string>>): readonly KeptSeries[] {
  return Object.entries(amounts).map(([name, amount]) => ({
    labels: { resource_type: resourceLabel(name) },
    shared,
    value: shownAmount(name, amount),
  }))
}

/**
 * Limits of one pod, with `pods: 1`, computed like requests; overhead counts only for limited resources.
 * @throws RangeError when a quantity is malformed.
 */
export function podLimits({ spec }: Pod): Resources {
  const { overhead, initContainers, ...rest } = spec
  const limits = podRequests({
    ...rest,
    containers: spec.containers.map(askingForLimits),
    ...(initContainers && { initContainers: initContainers.map(askingForLimits) }),
    ...(spec.resources && { resources: { requests: spec.resources.limits ?? {} } }),
  })
  const extra = Object.entries(parseResources(overhead)).filter(
    ([name]) => ownValue(limits, name) !== undefined,
  )
  return {
    ...limits,
    ...Object.fromEntries(extra.map(([name, amount]) => [name, (ownValue(limits, name) ?? 0) + amount])),
  }
}

function askingForLimits({ resources, ...container }: Container): Container {
  return { ...container, ...(resources?.limits && { resources: { requests: resources.limits } }) }
}
