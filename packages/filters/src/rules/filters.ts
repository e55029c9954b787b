import { ownValue, type Taint, undeclaredFeatures, untoleratedTaint } from '@tenon/api'
import { disksConflict } from '../pods/disks.ts'
import type { NodeEntry } from '../cluster/node-entry.ts'
import type { ClusterView, DomainCounts, PodCycle, SpreadState } from './pod-cycle.ts'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { FilterName, Rejection } from '../rejection.ts'
import {
  exclusiveClaimRejection,
  volumeBindingRejection,
  volumeLimitRejection,
  volumeZoneRejection,
} from '../volumes/volume-plan.ts'

const unschedulableTaint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

const unschedulable = refuse('NodeUnschedulable', false, 'node(s) were unschedulable')
const wrongName = refuse('NodeName', false, "node(s) didn't match the requested node name")
/** Also the reason for nodes that are not checked, as the pod names other nodes. */
export const affinityMismatch = refuse(
  'NodeAffinity',
  false,
  "node(s) didn't match Pod's node affinity/selector",
)
const featuresMissing = refuse('NodeDeclaredFeatures', false, "node(s) didn't match Pod's required features")
const portsTaken = refuse('NodePorts', true, "node(s) didn't have free ports for the requested pod ports")
const diskTaken = refuse('VolumeRestrictions', true, 'node(s) had no available disk')
const spreadViolated = refuse(
  'PodTopologySpread',
  true,
  "node(s) didn't match pod topology spread constraints",
)
const spreadLabelMissing = refuse(
  'PodTopologySpread',
  false,
  "node(s) didn't match pod topology spread constraints (missing required label)",
)
const affinityUnmet = refuse('InterPodAffinity', false, "node(s) didn't match pod affinity rules")
const antiAffinityUnmet = refuse('InterPodAffinity', true, "node(s) didn't match pod anti-affinity rules")
const closedByOthers = refuse(
  'InterPodAffinity',
  true,
  "node(s) didn't satisfy existing pods anti-affinity rules",
)

/** Why `entry` does not fit the cycle's pod, checked in the order of Kubernetes; undefined = it fits. */
export function checkNode(cycle: PodCycle, entry: NodeEntry): Rejection | undefined {
  const { facts, view } = cycle
  return (
    checkNodeItself(facts, entry) ??
    (facts.hostPorts.length === 0 || entry.hasFreePorts(facts) ? undefined : portsTaken) ??
    checkResources(facts, entry, view) ??
    (facts.disks.length === 0 ? undefined : checkDisks(facts, entry)) ??
    (facts.claims.length === 0 ? undefined : checkVolumes(cycle, entry)) ??
    checkDevices(cycle, entry) ??
    checkPods(cycle, entry) ??
    checkExtra(cycle, entry)
  )
}

/** Rules that depend on the node alone, not on its pods. */
export function checkNodeItself(facts: PodFacts, entry: NodeEntry): Rejection | undefined {
  if (entry.unschedulable && untoleratedTaint([unschedulableTaint], facts.tolerations) !== undefined) {
    return unschedulable
  }
  const named = facts.pod.spec.nodeName
  if (named !== undefined && named !== '' && named !== entry.name) return wrongName
  if (entry.hardTaints.length > 0) {
    const taint = untoleratedTaint(entry.hardTaints, facts.tolerations)
    if (taint !== undefined) {
      const text = `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`
      return refuse('TaintToleration', false, text)
    }
  }
  if (facts.nodes !== undefined && !facts.nodes.matches(entry.name, entry.labels)) return affinityMismatch
  if (undeclaredFeatures(facts.features, entry.node?.status?.declaredFeatures).length > 0)
    return featuresMissing
  return undefined
}

/** Whether the pod would fit on the node if it were empty. */
export function fitsEmptyNode(
  facts: PodFacts,
  entry: NodeEntry,
  view: Pick<ClusterView, 'devices' | 'index'>,
): boolean {
  return (
    entry.podsAllowed > 0 &&
    facts.requests.every(
      ({ slot, amount }) => amount <= (entry.allocatable[slot] ?? 0) || isServed(slot, entry, view),
    )
  )
}

/** Whether devices serve the resource on this node, as it has none itself (devices.md 3.22). */
function isServed(
  slot: number,
  { allocatable }: NodeEntry,
  { devices, index }: Pick<ClusterView, 'devices' | 'index'>,
): boolean {
  return (allocatable[slot] ?? 0) === 0 && devices?.classOf(index.table.nameOf(slot)) !== undefined
}

function checkResources(facts: PodFacts, entry: NodeEntry, view: ClusterView): Rejection | undefined {
  const { requests } = facts
  const { allocatable, requested } = entry
  let fits = entry.pods.size < entry.podsAllowed
  for (let index = 0; index < requests.length; index++) {
    const { slot, amount } = requests[index] as (typeof requests)[number]
    if (amount > (allocatable[slot] ?? 0) - (requested[slot] ?? 0) && !isServed(slot, entry, view))
      fits = false
  }
  if (fits) return undefined
  const reasons = entry.pods.size < entry.podsAllowed ? [] : ['Too many pods']
  for (const { slot, amount } of requests) {
    if (amount > (allocatable[slot] ?? 0) - (requested[slot] ?? 0) && !isServed(slot, entry, view)) {
      reasons.push(`Insufficient ${view.index.table.nameOf(slot)}`)
    }
  }
  return { filter: 'NodeResourcesFit', reasons, helpedByPreemption: fitsEmptyNode(facts, entry, view) }
}

function checkDisks({ disks }: PodFacts, entry: NodeEntry): Rejection | undefined {
  for (const other of entry.pods.values()) {
    if (disks.some((disk) => other.disks.some((taken) => disksConflict(disk, taken)))) return diskTaken
  }
  return undefined
}

function checkVolumes(cycle: PodCycle, entry: NodeEntry): Rejection | undefined {
  const { facts, view, volumePlan } = cycle
  return (
    exclusiveClaimRejection(volumePlan, facts, view.index) ??
    volumeLimitRejection(facts, entry, view.volumes) ??
    volumeBindingRejection(volumePlan, entry, view.volumes) ??
    volumeZoneRejection(volumePlan, entry)
  )
}

function checkDevices(cycle: PodCycle, entry: NodeEntry): Rejection | undefined {
  if (!cycle.usesDevices) return undefined
  const devices = cycle.devicesOn(entry)
  return 'reasons' in devices ? devices : undefined
}

function checkPods(cycle: PodCycle, entry: NodeEntry): Rejection | undefined {
  const { spread, affinity, antiAffinity, closed, mayBeFirst } = cycle.rules()
  for (const state of spread) {
    const rejection = checkSpread(state, entry)
    if (rejection !== undefined) return rejection
  }
  let podsExist = true
  for (const { topologyKey, counts } of affinity) {
    const domain = ownValue(entry.labels, topologyKey)
    if (domain === undefined) return affinityUnmet
    if (!counts.has(domain)) podsExist = false
  }
  if (!podsExist && !mayBeFirst) return affinityUnmet
  for (const { topologyKey, counts } of antiAffinity) {
    if (holds(counts, ownValue(entry.labels, topologyKey))) return antiAffinityUnmet
  }
  for (const { topologyKey, counts } of closed) {
    if (holds(counts, ownValue(entry.labels, topologyKey))) return closedByOthers
  }
  return undefined
}

function checkExtra({ facts, view }: PodCycle, { node }: NodeEntry): Rejection | undefined {
  const reason = node && view.extraFilter?.(facts.pod, node)
  return reason === undefined ? undefined : refuse('Extra', false, reason)
}

function holds(counts: DomainCounts, domain: string | undefined): boolean {
  return domain !== undefined && counts.has(domain)
}

function checkSpread(state: SpreadState, entry: NodeEntry): Rejection | undefined {
  const domain = ownValue(entry.labels, state.constraint.topologyKey)
  if (domain === undefined) return spreadLabelMissing
  const skew = (state.counts.get(domain) ?? 0) + state.self - state.least
  return skew > state.constraint.maxSkew ? spreadViolated : undefined
}

function refuse(filter: FilterName, helpedByPreemption: boolean, reason: string): Rejection {
  return { filter, reasons: [reason], helpedByPreemption }
}
