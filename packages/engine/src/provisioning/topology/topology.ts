/** All topology rules of one simulation, and what they say about a placement (scheduling.md 9). */
import { labels, matchesSelector, normalizedLabel, type Pod, type Taint } from '@tenon/api'
import { oneOf, type ValueSet } from '../../requirements/requirement.ts'
import { labelRequirements, type Requirements, requirementsOf } from '../../requirements/requirements.ts'
import type { TopologyInput } from '../../snapshot/input.ts'
import type { PodShape } from '../shape.ts'
import type { DomainUniverse } from './domains.ts'
import { type GroupRule, type SelectablePod, TopologyGroup } from './group.ts'
import { podRules, ruleIdentity } from './rules.ts'

/** Something a pod may be placed on, as topology sees it. */
export interface Place {
  readonly requirements: Requirements
  readonly taints: readonly Taint[]
}

/** The rules that bear on pods of one shape. */
interface ShapeTopology {
  /** Rules of the shape itself, and whether it counts for each. */
  readonly own: readonly { readonly group: TopologyGroup; readonly selfSelects: boolean }[]
  /** Rules of other pods that keep this shape away from them. */
  readonly repelledBy: readonly TopologyGroup[]
  /** The shape's own required anti-affinity, seen from the other side. */
  readonly inverse: readonly TopologyGroup[]
  /** Groups that count pods of this shape; renewed when groups are added. */
  counting: readonly TopologyGroup[]
  countingVersion: number
}

/** No rule allows the placement. */
export interface Unsatisfiable {
  readonly kind: 'unsatisfiable'
  readonly group: TopologyGroup
}

export class Topology {
  readonly #input: TopologyInput
  readonly #universe: DomainUniverse
  readonly #groups = new Map<string, TopologyGroup>()
  readonly #inverseGroups = new Map<string, TopologyGroup>()
  readonly #shapes = new Map<PodShape, ShapeTopology>()
  readonly #batch: ReadonlySet<string>
  readonly #placed: { readonly shape: PodShape; readonly place: () => Place }[] = []
  readonly #hostnames = new Set<string>()
  #version = 0

  /**
   * @param batch UIDs of the pods being placed: they count where they are going, not where they are.
   * @param shapes shapes of the batch; their anti-affinity holds from the start.
   */
  constructor(
    input: TopologyInput,
    universe: DomainUniverse,
    batch: ReadonlySet<string>,
    shapes: Iterable<PodShape>,
  ) {
    this.#input = input
    this.#universe = universe
    this.#batch = batch
    const all = [...shapes]
    this.#observeBoundAntiAffinity()
    for (const shape of all) for (const rule of this.#rulesOf(shape).inverse) this.#inverseGroup(rule)
    for (const shape of all) this.#topologyOf(shape)
  }

  /** Whether placements of this shape depend on where others are. */
  concerns(shape: PodShape): boolean {
    const { own, repelledBy } = this.#topologyOf(shape)
    return own.length > 0 || repelledBy.length > 0
  }

  /** Makes a host known to every rule about hosts. */
  addHost(hostname: string): void {
    if (this.#hostnames.has(hostname)) return
    this.#hostnames.add(hostname)
    for (const group of [...this.#groups.values(), ...this.#inverseGroups.values()]) {
      if (group.rule.key === labels.hostname) group.addDomain(hostname)
    }
  }

  /**
   * What the rules add to the requirements of a placement.
   * @param requirements the candidate's, the pod's included.
   * @param isFixed whether the candidate is a node, which gains no further label.
   */
  narrow(shape: PodShape, requirements: Requirements, isFixed: boolean): Requirements | Unsatisfiable {
    const { own, repelledBy } = this.#topologyOf(shape)
    const strict = shape.requirements.strict
    const added: ValueSet[] = []
    const propose = (group: TopologyGroup, selfSelects: boolean): boolean => {
      const { key } = group.rule
      const domains = group.propose(strict.get(key), requirements.get(key), selfSelects)
      if (domains.length > 0) added.push(oneOf(key, ...domains))
      return domains.length > 0
    }
    for (const group of repelledBy) {
      if (isOutOfReach(group, requirements, isFixed)) continue
      if (!propose(group, false)) return { kind: 'unsatisfiable', group }
    }
    for (const { group, selfSelects } of own)
      if (!propose(group, selfSelects)) return { kind: 'unsatisfiable', group }
    return added.length === 0 ? noAddition : requirementsOf(added)
  }

  /** Counts a placed pod. @param place tells the final requirements, which may narrow further. */
  record(shape: PodShape, place: () => Place): void {
    this.#placed.push({ shape, place })
    const topology = this.#topologyOf(shape)
    const at = place()
    for (const group of this.#counting(shape, topology)) countIn(group, at)
    for (const group of topology.inverse) for (const domain of possibleValues(group, at)) group.record(domain)
  }

  #counting(shape: PodShape, topology: ShapeTopology): readonly TopologyGroup[] {
    if (topology.countingVersion !== this.#version) {
      topology.counting = [...this.#groups.values()].filter((group) => group.selects(shape.selectable))
      topology.countingVersion = this.#version
    }
    return topology.counting
  }

  #rulesOf(shape: PodShape) {
    return podRules(shape.spec, shape.selectable, this.#input.namespaces, matchesSelector)
  }

  #topologyOf(shape: PodShape): ShapeTopology {
    const known = this.#shapes.get(shape)
    if (known !== undefined) return known
    const rules = this.#rulesOf(shape)
    const topology: ShapeTopology = {
      own: rules.own.map((rule) => {
        const group = this.#group(rule)
        return { group, selfSelects: group.selects(shape.selectable) }
      }),
      repelledBy: [...this.#inverseGroups.values()].filter((group) => group.selects(shape.selectable)),
      inverse: rules.inverse.map((rule) => this.#inverseGroup(rule)),
      counting: [],
      countingVersion: -1,
    }
    this.#shapes.set(shape, topology)
    return topology
  }

  #group(rule: GroupRule): TopologyGroup {
    const identity = ruleIdentity(rule)
    const known = this.#groups.get(identity)
    if (known !== undefined) return known
    const group = this.#withDomains(new TopologyGroup(rule))
    this.#groups.set(identity, group)
    this.#version++
    this.#countBoundPods(group)
    // A rule that came in late must know what this simulation has placed already.
    for (const { shape, place } of this.#placed) if (group.selects(shape.selectable)) countIn(group, place())
    return group
  }

  #inverseGroup(rule: GroupRule): TopologyGroup {
    const identity = ruleIdentity({ ...rule, filter: { alternatives: [], tolerations: undefined } })
    const known = this.#inverseGroups.get(identity)
    if (known !== undefined) return known
    const group = this.#withDomains(
      new TopologyGroup({ ...rule, filter: { alternatives: [], tolerations: undefined } }),
    )
    this.#inverseGroups.set(identity, group)
    return group
  }

  #withDomains(group: TopologyGroup): TopologyGroup {
    const { key, filter, kind } = group.rule
    for (const domain of this.#universe.domains(key, filter.tolerations)) group.addDomain(domain)
    for (const node of this.#input.nodes.values()) {
      if (!node.isCandidate) continue
      const domain = key === labels.hostname ? node.hostname : node.labels[key]
      const isCounted = kind !== 'spread' || group.admits(labelRequirements(node.labels), node.taints)
      if (domain !== undefined && isCounted) group.addDomain(domain)
    }
    if (key === labels.hostname) for (const hostname of this.#hostnames) group.addDomain(hostname)
    return group
  }

  #countBoundPods(group: TopologyGroup): void {
    for (const pod of this.#input.pods) {
      if (this.#batch.has(pod.metadata.uid ?? '') || !isCounted(pod) || !group.selects(selectable(pod)))
        continue
      const node = this.#input.nodes.get(pod.spec.nodeName ?? '')
      if (node === undefined) continue
      const domain = group.rule.key === labels.hostname ? node.hostname : node.labels[group.rule.key]
      if (domain === undefined) continue
      if (group.rule.kind === 'spread' && !group.admits(labelRequirements(node.labels), node.taints)) continue
      group.record(domain)
    }
  }

  /** Bound pods keep away whom they selected, also while they are terminating. */
  #observeBoundAntiAffinity(): void {
    for (const pod of this.#input.pods) {
      const terms = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
      if (terms.length === 0 || this.#batch.has(pod.metadata.uid ?? '') || isTerminal(pod)) continue
      const node = this.#input.nodes.get(pod.spec.nodeName ?? '')
      if (node === undefined) continue
      const { inverse } = podRules(pod.spec, selectable(pod), this.#input.namespaces, matchesSelector)
      for (const rule of inverse) {
        const domain = node.labels[normalizedLabel(rule.key)]
        if (domain !== undefined) this.#inverseGroup(rule).record(domain)
      }
    }
  }
}

/** A candidate that can never carry the key is no place the rule is about. */
function isOutOfReach(group: TopologyGroup, requirements: Requirements, isFixed: boolean): boolean {
  return !requirements.has(group.rule.key) && (isFixed || group.counts.size === 0)
}

const noAddition: Requirements = new Map()

/** Counts a pod at a place: everywhere it may be for anti-affinity, else only where it surely is. */
function countIn(group: TopologyGroup, at: Place): void {
  if (group.rule.kind === 'spread' && !group.admits(at.requirements, at.taints)) return
  const values = possibleValues(group, at)
  if (group.rule.kind === 'antiAffinity') for (const value of values) group.record(value)
  else if (values.length === 1) group.record(values[0] as string)
}

function possibleValues(group: TopologyGroup, at: Place): readonly string[] {
  const set = at.requirements.get(group.rule.key)
  return set === undefined || set.complement ? [] : [...set.values]
}

const isTerminal = (pod: Pod) => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
const isCounted = (pod: Pod) => !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined

function selectable(pod: Pod): SelectablePod {
  return { namespace: pod.metadata.namespace ?? '', labels: pod.metadata.labels ?? {} }
}
