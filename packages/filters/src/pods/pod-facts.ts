import {
  type Pod,
  type PodAffinityTerm,
  requiredFeatures,
  type Toleration,
  type TopologySpreadConstraint,
  type WeightedPodAffinityTerm,
} from '@tenon/api'
import { fromLabels } from '../label-keys.ts'
import { type Disk, disksOf } from './disks.ts'
import { requestsBySlot } from './pod-requests.ts'
import { type Amount, cpuSlot, memorySlot, type ResourceTable } from './resource-table.ts'
import { type LabelMatcher, labelMatcher, type Labels, type NodeMatcher, nodeMatcher } from './selectors.ts'

/** A host port of a pod. */
interface HostPort {
  readonly ip: string
  /** Such as `TCP/8080`. */
  readonly slot: string
}

/** A compiled pod (anti-)affinity term. */
export interface PodTerm {
  /** Equal for terms that select the same pods, whatever their topology key. */
  readonly key: string
  readonly topologyKey: string
  readonly namespaces: ReadonlySet<string>
  /** Selects more namespaces, by their labels. */
  readonly namespaceSelector: LabelMatcher | undefined
  readonly labels: LabelMatcher
}

interface WeightedTerm {
  /** Negative for anti-affinity. */
  readonly weight: number
  readonly term: PodTerm
}

/** A compiled topology spread constraint. */
export interface SpreadConstraint {
  readonly topologyKey: string
  readonly maxSkew: number
  readonly minDomains: number
  readonly selector: LabelMatcher
  readonly honourAffinity: boolean
  readonly honourTaints: boolean
}

/** Everything that filters need to know of a pod, computed once per version of it. */
export interface PodFacts {
  readonly pod: Pod
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
  readonly priority: number
  readonly terminating: boolean
  readonly requests: readonly Amount[]
  readonly cpu: number
  readonly memory: number
  readonly scored: { readonly cpu: number; readonly memory: number }
  readonly hostPorts: readonly HostPort[]
  readonly nodes: NodeMatcher | undefined
  readonly tolerations: readonly Toleration[]
  /** Features that the node must declare. */
  readonly features: readonly string[]
  readonly affinity: readonly PodTerm[]
  readonly antiAffinity: readonly PodTerm[]
  readonly preferred: readonly WeightedTerm[]
  readonly hardSpread: readonly SpreadConstraint[]
  readonly softSpread: readonly SpreadConstraint[]
  readonly claims: readonly PodClaim[]
  readonly disks: readonly Disk[]
}

/** A PersistentVolumeClaim that a pod mounts; `ephemeral` claims are created for the pod. */
interface PodClaim {
  readonly name: string
  readonly ephemeral: boolean
}

const nothing: readonly never[] = []

/**
 * Compiles a pod.
 * @param requestsOf computes its requests. Pass the same function for all pods of a table, as it caches equal pods.
 */
export function podFacts(pod: Pod, table: ResourceTable, requestsOf = requestsBySlot(table)): PodFacts {
  const spec = pod.spec
  const namespace = pod.metadata.namespace ?? 'default'
  const labels = pod.metadata.labels ?? {}
  const { requests, scored } = requestsOf(pod)
  const spread = spec.topologySpreadConstraints ?? nothing
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const compile = (term: PodAffinityTerm): PodTerm => podTerm(term, namespace, labels)
  return {
    pod,
    uid: pod.metadata.uid ?? `${namespace}/${pod.metadata.name}`,
    namespace,
    name: pod.metadata.name,
    labels,
    priority: spec.priority ?? 0,
    terminating: pod.metadata.deletionTimestamp !== undefined,
    requests,
    cpu: requests.find((one) => one.slot === cpuSlot)?.amount ?? 0,
    memory: requests.find((one) => one.slot === memorySlot)?.amount ?? 0,
    scored,
    hostPorts: hostPorts(pod),
    nodes: nodeMatcher(spec),
    tolerations: spec.tolerations ?? nothing,
    features: requiredFeatures(spec),
    affinity: (podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? nothing).map(compile),
    antiAffinity: (podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? nothing).map(compile),
    preferred: [
      ...weighted(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution, 1, compile),
      ...weighted(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution, -1, compile),
    ],
    hardSpread: spreadConstraints(spread, 'DoNotSchedule', labels),
    softSpread: spreadConstraints(spread, 'ScheduleAnyway', labels),
    claims: claims(pod),
    disks: disksOf(pod),
  }
}

/** Whether `term` selects the pod. */
export function termSelects(
  term: PodTerm,
  facts: PodFacts,
  namespaceLabels: (namespace: string) => Labels,
): boolean {
  const inNamespace =
    term.namespaces.has(facts.namespace) ||
    (term.namespaceSelector?.matches(namespaceLabels(facts.namespace)) ?? false)
  return inNamespace && term.labels.matches(facts.labels)
}

function podTerm(term: PodAffinityTerm, namespace: string, labels: Labels): PodTerm {
  const extra = [
    ...fromLabels(term.matchLabelKeys, labels, 'In'),
    ...fromLabels(term.mismatchLabelKeys, labels, 'NotIn'),
  ]
  const matcher = labelMatcher(term.labelSelector, extra)
  const named = term.namespaces ?? nothing
  const own = named.length === 0 && term.namespaceSelector === undefined
  const namespaces = own ? [namespace] : [...named].toSorted()
  const namespaceSelector =
    term.namespaceSelector === undefined ? undefined : labelMatcher(term.namespaceSelector)
  return {
    key: JSON.stringify([matcher.key, namespaces, namespaceSelector?.key]),
    topologyKey: term.topologyKey,
    namespaces: new Set(namespaces),
    namespaceSelector,
    labels: matcher,
  }
}

function weighted(
  terms: readonly WeightedPodAffinityTerm[] | undefined,
  sign: number,
  compile: (term: PodAffinityTerm) => PodTerm,
): WeightedTerm[] {
  return (terms ?? nothing).map((one) => ({ weight: sign * one.weight, term: compile(one.podAffinityTerm) }))
}

function spreadConstraints(
  constraints: readonly TopologySpreadConstraint[],
  kind: TopologySpreadConstraint['whenUnsatisfiable'],
  labels: Labels,
): SpreadConstraint[] {
  return constraints
    .filter((one) => one.whenUnsatisfiable === kind)
    .map((one) => ({
      topologyKey: one.topologyKey,
      maxSkew: one.maxSkew,
      minDomains: one.minDomains ?? 1,
      selector: labelMatcher(one.labelSelector, fromLabels(one.matchLabelKeys, labels, 'In')),
      honourAffinity: one.nodeAffinityPolicy !== 'Ignore',
      honourTaints: one.nodeTaintsPolicy === 'Honor',
    }))
}

/** Host ports of containers and sidecars. */
function hostPorts(pod: Pod): HostPort[] {
  const sidecars = (pod.spec.initContainers ?? nothing).filter((one) => one.restartPolicy === 'Always')
  const ports: HostPort[] = []
  for (const container of [...pod.spec.containers, ...sidecars]) {
    for (const port of container.ports ?? nothing) {
      const number = port.hostPort ?? 0
      if (number > 0)
        ports.push({ ip: port.hostIP || '0.0.0.0', slot: `${port.protocol ?? 'TCP'}/${number}` })
    }
  }
  return ports
}

function claims(pod: Pod): PodClaim[] {
  return (pod.spec.volumes ?? nothing).flatMap((volume): PodClaim[] => {
    if (volume.persistentVolumeClaim !== undefined)
      return [{ name: volume.persistentVolumeClaim.claimName, ephemeral: false }]
    return volume.ephemeral === undefined
      ? []
      : [{ name: `${pod.metadata.name}-${volume.name}`, ephemeral: true }]
  })
}
