/** Groups pods and nodes, so that the lower bound stays a small problem. */
import {
  admitsValue,
  type InstanceType,
  labels,
  type NodeSelectorRequirement,
  type Pod,
  podRequests,
  type PodSpec,
  type PricePerHour,
  type Requirement,
  type Resources,
  type Taint,
  type Toleration,
  untoleratedTaint,
} from '@tenon/api'
import { allocatableOf, type NodeInput, type PoolInput, type SchedulingInput } from '@tenon/engine'
import { withoutSuperfluous } from './superfluous.ts'

/** Pods with equal requests and equal hard constraints on their node. */
export interface Shape {
  readonly requests: Resources
  readonly count: number
  /** One of these must match the node's labels. */
  readonly alternatives: readonly (readonly NodeSelectorRequirement[])[]
  readonly tolerations: readonly Toleration[]
  /** Pods with the same key exclude each other from a node. */
  readonly exclusive: string | undefined
}

/** Nodes for pods: new ones of one price and size, or existing ones. */
export interface Source {
  /** Per hour and node; 0 for existing nodes. */
  readonly pricePerHour: number
  /** Of one node; for existing nodes of all of them together. */
  readonly capacity: Resources
  /** Number of existing nodes; undefined if any number can be bought. */
  readonly existing: number | undefined
  /** Indices of the shapes that fit. */
  readonly hosts: readonly number[]
}

/** Possible values of a node's labels. */
type Labels = ReadonlyMap<string, readonly string[]>

/**
 * Groups pods by what the bound considers; of topology only exclusion. Exclusion forces new nodes only for
 * kinds with more pods than there are nodes, and is ignored for the others.
 */
export function shapesOf(pods: readonly Pod[], nodeCount: number): readonly Shape[] {
  const shapes = new Map<string, Shape & { count: number }>()
  for (const { metadata, spec } of pods) {
    const requests = podRequests(spec)
    const exclusive = exclusionOf(metadata.labels ?? {}, spec)
    const key = JSON.stringify([
      requests,
      exclusive,
      spec.nodeSelector,
      spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
      spec.tolerations,
    ])
    const known = shapes.get(key)
    if (known) known.count++
    else {
      const alternatives = alternativesOf(spec)
      shapes.set(key, { requests, count: 1, alternatives, tolerations: spec.tolerations ?? [], exclusive })
    }
  }
  const kinds = Map.groupBy(shapes.values(), ({ exclusive }) => exclusive)
  return [...kinds.values()].flatMap((kind) => {
    const isForcing = kind.reduce((total, { count }) => total + count, 0) > nodeCount
    return isForcing ? kind : kind.map((shape) => ({ ...shape, exclusive: undefined }))
  })
}

function alternativesOf(spec: PodSpec): Shape['alternatives'] {
  const selected = Object.entries(spec.nodeSelector ?? {}).map(
    ([key, value]): NodeSelectorRequirement => ({ key, operator: 'In', values: [value] }),
  )
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (required === undefined) return [selected]
  return required.nodeSelectorTerms.map(({ matchExpressions = [] }) => [...selected, ...matchExpressions])
}

/** The anti-affinity term that keeps pods of the same kind off each other's host. */
function exclusionOf(own: Readonly<Record<string, string>>, spec: PodSpec): string | undefined {
  const terms = spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const term = terms.find(({ topologyKey, labelSelector }) => {
    const wanted = Object.entries(labelSelector?.matchLabels ?? {})
    const isPlain = labelSelector?.matchExpressions === undefined && wanted.length > 0
    return topologyKey === labels.hostname && isPlain && wanted.every(([key, value]) => own[key] === value)
  })
  return term && JSON.stringify(term.labelSelector)
}

function admits(
  node: Labels,
  taints: readonly Taint[],
  { alternatives, tolerations }: Pick<Shape, 'alternatives' | 'tolerations'>,
): boolean {
  if (untoleratedTaint(taints, tolerations) !== undefined) return false
  return alternatives.some((requirements) => requirements.every((each) => mayMeet(node, each)))
}

function mayMeet(node: Labels, requirement: Requirement): boolean {
  const values = node.get(requirement.key)
  if (values === undefined) return requirement.operator === 'NotIn' || requirement.operator === 'DoesNotExist'
  return values.some((value) => admitsValue(requirement, value))
}

/** All sources that fit some of `shapes`, without superfluous ones. */
export function sourcesOf(
  input: SchedulingInput,
  shapes: readonly Shape[],
  boundOn: 'capacity' | 'allocatable',
): readonly Source[] {
  const offered = input.pools.flatMap((each) => poolSources(each, input, shapes, boundOn))
  return [...existingSources(input, shapes), ...withoutSuperfluous(offered, shapes)]
}

/** One source per offering of each type. */
function poolSources(
  { nodePool, instanceTypes }: PoolInput,
  { daemons }: SchedulingInput,
  shapes: readonly Shape[],
  boundOn: 'capacity' | 'allocatable',
): readonly Source[] {
  const { metadata, spec } = nodePool.spec.template
  const { taints = [], requirements } = spec
  const agents = daemons.map((daemon) => ({
    alternatives: alternativesOf(daemon.spec),
    tolerations: daemon.spec.tolerations ?? [],
    requests: podRequests(daemon.spec),
  }))
  const own = Object.entries({ ...metadata?.labels, [labels.nodePool]: nodePool.metadata.name })
  return instanceTypes.flatMap((type) =>
    nodesOf(type, requirements).map(({ node, pricePerHour }): Source => {
      for (const [key, value] of own) node.set(key, [value])
      const capacity: Record<string, number> = {
        ...(boundOn === 'capacity' ? type.capacity : allocatableOf(type)),
      }
      for (const agent of boundOn === 'capacity' ? [] : agents) {
        if (admits(node, taints, agent)) subtract(capacity, agent.requests)
      }
      const hosts = shapes.flatMap((shape, i) =>
        fits(shape.requests, capacity) && admits(node, taints, shape) ? [i] : [],
      )
      return { pricePerHour: pricePerHour ?? Number.NaN, capacity, existing: undefined, hosts }
    }),
  )
}

/** The possible labels of each available offering of a type under the pool's requirements. */
function nodesOf(
  type: InstanceType,
  requirements: readonly Requirement[],
): readonly { readonly node: Map<string, readonly string[]>; readonly pricePerHour: PricePerHour }[] {
  return type.offerings
    .filter(({ available }) => available)
    .map((offering) => {
      const stated = [...type.requirements, ...offering.requirements]
      const node = new Map(stated.map(({ key, values = [] }) => [key, values]))
      for (const requirement of requirements) {
        const { key } = requirement
        node.set(
          key,
          (node.get(key) ?? requirement.values ?? []).filter((value) => admitsValue(requirement, value)),
        )
      }
      return { node, pricePerHour: offering.pricePerHour }
    })
    .filter(({ node }) => [...node.values()].every((values) => values.length > 0))
}

/** Nodes that fit the same shapes, as one source: a relaxation, so the bound stays valid. */
function existingSources({ nodes }: SchedulingInput, shapes: readonly Shape[]): readonly Source[] {
  const admitted = (node: NodeInput) => {
    const own = new Map(Object.entries(node.labels).map(([key, value]) => [key, [value]]))
    return shapes.flatMap((shape, i) => (admits(own, node.taints, shape) ? [i] : [])).join()
  }
  return [...Map.groupBy(nodes, admitted)].map(([indices, alike]): Source => {
    const capacity: Record<string, number> = {}
    for (const { available } of alike) {
      for (const [name, amount] of Object.entries(available)) capacity[name] = (capacity[name] ?? 0) + amount
    }
    const hosts = indices
      .split(',')
      .filter((index) => index !== '')
      .map(Number)
      .filter((i) => alike.some(({ available }) => fits((shapes[i] as Shape).requests, available)))
    return { pricePerHour: 0, capacity, existing: alike.length, hosts }
  })
}

function subtract(from: Record<string, number>, amounts: Resources): void {
  for (const [name, amount] of Object.entries(amounts)) from[name] = (from[name] ?? 0) - amount
}

function fits(requests: Resources, total: Resources): boolean {
  return Object.entries(requests).every(([name, amount]) => amount <= (total[name] ?? 0))
}
