/** Whether pods may be where they are: on nodes that are there. */
import { labels as names, type Pod, type Resources } from '@tenon/api'
import type { NodeInput, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import {
  clash,
  clashAmong,
  demandOf,
  demandOfAll,
  lacking,
  type Port,
  portsOf,
  total,
} from './demands.test-support.ts'
import {
  anyTermHolds,
  type Expression,
  type Labels,
  nodeTerms,
  normalised,
  untoleratedTaints,
} from './labels.test-support.ts'

/** A pod as messages name it. */
export const nameOf = (pod: Pod): string => `pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`

/** A node's labels, with its name for a missing host name. */
export function nodeLabels(node: NodeInput): Labels {
  return { [names.hostname]: node.name, ...normalised(node.labels) }
}

function daemonsOf(node: NodeInput, input: SchedulingInput): SchedulingInput['daemons'] {
  return input.daemons.filter(
    ({ spec }) =>
      untoleratedTaints(node.taints, spec, false).length === 0 &&
      anyTermHolds(nodeTerms(spec), nodeLabels(node)),
  )
}

/** Host ports that pods of the node have, or daemons that belong there. */
export function portsTakenOn(node: NodeInput, input: SchedulingInput): readonly Port[] {
  return [...node.usedHostPorts, ...daemonsOf(node, input).flatMap(({ spec }) => portsOf(spec))]
}

/** What is free for pods once the daemons that are still to come have come. */
export function roomOn(node: NodeInput, input: SchedulingInput): Resources {
  const coming = daemonsOf(node, input)
  const expected = total(coming.map((daemon) => demandOf(daemon.spec)))
  return Object.fromEntries(
    Object.entries(node.available).map(([name, amount]) => [
      name,
      amount - Math.max(0, (expected[name] ?? 0) - (node.daemonRequests[name] ?? 0)),
    ]),
  )
}

/** The terms that a pod's volumes offer; one must hold. */
export function volumeTerms(pod: Pod, input: SchedulingInput): readonly (readonly Expression[])[] {
  const alternatives = input.volumes?.get(pod.metadata.uid ?? '')?.alternatives ?? []
  return alternatives.length === 0 ? [[]] : alternatives
}

/** CSI drivers whose attach limit these pods and those on the node exceed together. */
export function exceededVolumeLimits(
  node: NodeInput,
  pods: readonly Pod[],
  input: SchedulingInput,
): readonly string[] {
  return Object.entries(node.volumeLimits ?? {}).flatMap(([driver, limit]) => {
    const claims = pods.flatMap((pod) => input.volumes?.get(pod.metadata.uid ?? '')?.claims[driver] ?? [])
    const attached = new Set([...(node.volumesInUse?.[driver] ?? []), ...claims])
    return attached.size > limit ? [driver] : []
  })
}

/** Why a pod may not be on this node at all, others apart. */
export function nodeRefusals(
  pod: Pod,
  node: NodeInput,
  input: SchedulingInput,
  softTaintsCount: boolean,
): readonly string[] {
  const origin = input.origins?.get(pod.metadata.uid ?? '') ?? 'pending'
  const refusals: string[] = []
  const labels = nodeLabels(node)
  if (untoleratedTaints(node.taints, pod.spec, softTaintsCount).length > 0) refusals.push('taint')
  if (!anyTermHolds(nodeTerms(pod.spec), labels)) refusals.push('node selector or affinity')
  if (!anyTermHolds(volumeTerms(pod, input), labels)) refusals.push('volume topology')
  if (input.volumes?.get(pod.metadata.uid ?? '')?.unknownClaims === true) refusals.push('unknown volumes')
  if (node.takesOnlyPlanned === true && input.planned?.get(pod.metadata.uid ?? '') !== node.name)
    refusals.push('planned pods only')
  if (node.refusesCandidatePods === true && origin === 'candidate') refusals.push('consolidateAfter')
  if (input.policy.simulation === 'disruption' && !node.initialized && origin !== 'deleting')
    refusals.push('not initialized')
  return refusals
}

/** Rules broken by placements on existing nodes. */
export function checkNodes(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  const violations: string[] = []
  for (const { pod, node } of result.placements)
    if (!input.nodes.some((each) => each.name === node))
      violations.push(`${nameOf(pod)}: placed on node ${node}, which is not there`)
  for (const node of input.nodes) {
    const pods = result.placements.filter((placement) => placement.node === node.name).map((each) => each.pod)
    if (pods.length > 0) violations.push(...checkNode(input, node, pods))
  }
  return violations
}

function checkNode(input: SchedulingInput, node: NodeInput, pods: readonly Pod[]): readonly string[] {
  const violations: string[] = []
  for (const pod of pods) {
    for (const refusal of nodeRefusals(pod, node, input, false))
      violations.push(`${nameOf(pod)}: node ${node.name} is refused by ${refusal}`)
    if (clash(portsOf(pod.spec), portsTakenOn(node, input)))
      violations.push(`${nameOf(pod)}: host port is taken on node ${node.name}`)
  }
  if (clashAmong(pods.map((pod) => portsOf(pod.spec))))
    violations.push(`node ${node.name}: host ports of its new pods clash`)
  for (const name of lacking(demandOfAll(pods), roomOn(node, input)))
    violations.push(`node ${node.name}: more ${name} is asked of it than is free`)
  if (pods.some((pod) => input.volumes?.get(pod.metadata.uid ?? '') !== undefined))
    for (const driver of exceededVolumeLimits(node, pods, input))
      violations.push(`node ${node.name}: more volumes of ${driver} than it can attach`)
  return violations
}

/** CSI drivers of which these pods have more volumes than a new node of an instance type attaches. */
export function exceededOnType(
  instanceType: string,
  pods: readonly Pod[],
  input: SchedulingInput,
): readonly string[] {
  const { byType = {}, others = {} } = input.attachLimits ?? {}
  const limits = { ...others, ...byType[instanceType] }
  return Object.keys(others).filter((driver) => {
    const claims = pods.flatMap((pod) => input.volumes?.get(pod.metadata.uid ?? '')?.claims[driver] ?? [])
    return new Set(claims).size > (limits[driver] ?? 0)
  })
}
