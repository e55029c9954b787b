/** Claims opened by a simulation, filling up with pods (scheduling.md 6.6). */
import { labels, type Pod, type Resources } from '@tenon/api'
import type { TemplateReason } from '../reasons/reasons.ts'
import { anyValue, oneOf, operatorOf } from '../requirements/requirement.ts'
import {
  incompatibility,
  merged,
  requirementList,
  requirementsOf,
  type Requirements,
} from '../requirements/requirements.ts'
import type { SchedulingPolicy } from '../snapshot/input.ts'
import type { NewClaim } from '../snapshot/result.ts'
import { type HostPort, portsClash } from './host-ports.ts'
import {
  cheapestPrice,
  type CompiledType,
  filterTypes,
  offeredCapacityTypes,
  unmetMinValues,
} from './instance-types.ts'
import { sum } from './pod-resources.ts'
import type { PodShape } from './shape.ts'
import { untolerated } from './taints.ts'
import { portsFree, simulationOnlyLabels, type Template } from './template.ts'
import type { Topology } from './topology/topology.ts'

interface Acceptance {
  readonly kind: 'accepted'
  readonly requirements: Requirements
  readonly types: readonly CompiledType[]
  readonly minValuesRelaxed: boolean
}

interface Refusal {
  readonly kind: 'refused'
  readonly reason: TemplateReason
  /** Whether no later placement can change it; rules about other pods may. */
  readonly isFinal: boolean
}

type Verdict = Acceptance | Refusal

/** One claim during a simulation. */
export class ClaimFill {
  readonly template: Template
  readonly pods: Pod[] = []
  #types: readonly CompiledType[]
  #requirements: Requirements
  #requests: Resources = {}
  #hostPorts: readonly HostPort[] = []
  #minValuesRelaxed = false

  readonly #hostname: string

  /**
   * @param types the template's types that the pool's limits leave.
   * @param hostname stands in for the name the node will get, for rules about hosts.
   */
  constructor(template: Template, types: readonly CompiledType[], hostname: string) {
    this.template = template
    this.#types = types
    this.#hostname = hostname
    this.#requirements = merged(template.requirements, requirementsOf([oneOf(labels.hostname, hostname)]))
  }

  get types(): readonly CompiledType[] {
    return this.#types
  }

  /** Judges a pod of this shape. */
  judge(shape: PodShape, policy: SchedulingPolicy, topology: Topology, relaxMinValues: boolean): Verdict {
    const taints = untolerated(this.template.taints, shape.tolerations)
    if (taints.length > 0) return refused({ kind: 'untoleratedTaints', taints })
    const wanted = shape.requirements.preferred
    const conflict = incompatibility(this.#requirements, wanted, policy.wellKnownLabels)
    if (conflict !== undefined) return refused({ kind: 'incompatibleRequirements', conflict })
    if (portsClash(shape.hostPorts, this.#hostPorts)) return refused({ kind: 'hostPortClash' })
    const requirements = merged(this.#requirements, wanted)
    if (!topology.concerns(shape)) return this.#filter(shape, requirements, policy, relaxMinValues)
    const added = topology.narrow(shape, requirements, false)
    if ('kind' in added) {
      const { kind: rule, key } = added.group.rule
      return refused({ kind: 'topology', rule, key, counts: added.group.counts }, false)
    }
    const mismatch = incompatibility(requirements, added, policy.wellKnownLabels)
    if (mismatch !== undefined)
      return refused({ kind: 'incompatibleRequirements', conflict: mismatch }, false)
    const verdict = this.#filter(shape, merged(requirements, added), policy, relaxMinValues)
    if (verdict.kind === 'accepted') return verdict
    const elsewhere = this.#filter(shape, requirements, policy, relaxMinValues)
    return { ...verdict, isFinal: elsewhere.kind === 'refused' }
  }

  #filter(
    shape: PodShape,
    requirements: Requirements,
    policy: SchedulingPolicy,
    relaxMinValues: boolean,
  ): Verdict {
    const requests = sum(this.#requests, shape.requests)
    const open = this.#types.filter((type) => portsFree(this.template, type, shape.hostPorts))
    if (open.length === 0) return refused({ kind: 'hostPortClash' })
    const { remaining, outcome } = filterTypes(
      open,
      requirements,
      requests,
      this.template.overheadOf,
      policy.wellKnownLabels,
    )
    if (remaining.length === 0) return refused({ kind: 'noInstanceType', outcome, requirements, requests })
    const missing = unmetMinValues(remaining, requirements)
    if (missing.size > 0 && !relaxMinValues) return refused({ kind: 'minValues', missing })
    return {
      kind: 'accepted',
      requirements: missing.size === 0 ? requirements : lowered(requirements, missing),
      types: remaining,
      minValuesRelaxed: missing.size > 0,
    }
  }

  place(pod: Pod, shape: PodShape, verdict: Acceptance, topology: Topology): void {
    if (this.pods.length === 0) topology.addHost(this.#hostname)
    this.pods.push(pod)
    this.#types = verdict.types
    this.#requirements = verdict.requirements
    this.#requests = sum(this.#requests, shape.requests)
    this.#minValuesRelaxed ||= verdict.minValuesRelaxed
    if (shape.hostPorts.length > 0) this.#hostPorts = [...this.#hostPorts, ...shape.hostPorts]
    topology.record(shape, () => ({ requirements: this.#requirements, taints: this.template.taints }))
  }

  /** The claim to create, or the keys whose minValues the longest list allowed cannot keep. */
  finish(policy: SchedulingPolicy): NewClaim | { readonly kind: 'minValuesLost' } {
    const priced = this.#types
      .map((type) => ({ type, price: cheapestPrice(type, this.#requirements, policy.wellKnownLabels) }))
      .toSorted((a, b) => a.price - b.price || (a.type.type.name < b.type.type.name ? -1 : 1))
      .slice(0, policy.maxInstanceTypes)
    const kept = priced.map(({ type }) => type)
    if (policy.minValues === 'Strict' && unmetMinValues(kept, this.#requirements).size > 0) {
      return { kind: 'minValuesLost' }
    }
    const requirements = this.#finalRequirements(kept, policy)
    return {
      nodePool: this.template.nodePool.metadata.name,
      pool: this.template.nodePool,
      overlaid: {
        price: kept.some(({ type }) => type.overlaid?.price === true),
        capacity: kept.some(({ type }) => type.overlaid?.capacity === true),
      },
      reservationIds: [],
      labels: { ...customLabels(requirements, policy.wellKnownLabels), ...this.template.labels },
      requirements: requirementList(requirements),
      requests: sum(this.#requests, commonOverhead(kept, this.template)),
      instanceTypes: kept.map((type) => type.type.name),
      pricePerHour: priced[0]?.price ?? Number.POSITIVE_INFINITY,
      minValuesRelaxed: this.#minValuesRelaxed,
      pods: this.pods,
    }
  }

  #finalRequirements(types: readonly CompiledType[], policy: SchedulingPolicy): Requirements {
    const names = oneOf(labels.instanceType, ...types.map((type) => type.type.name))
    const least = this.#requirements.get(labels.instanceType)?.minValues
    const offered = offeredCapacityTypes(types, this.#requirements, policy.wellKnownLabels)
    const kept = [...this.#requirements.values()].filter(
      (set) =>
        !simulationOnlyLabels.includes(set.key) &&
        set.key !== labels.hostname &&
        set.key !== labels.instanceType,
    )
    const capacity = offered.length === 0 ? [] : [oneOf(labels.capacityType, ...offered)]
    return requirementsOf([
      ...kept,
      least === undefined ? names : { ...names, minValues: least },
      ...capacity,
    ])
  }
}

function refused(reason: TemplateReason, isFinal = true): Refusal {
  return { kind: 'refused', reason, isFinal }
}

function lowered(requirements: Requirements, found: ReadonlyMap<string, number>): Requirements {
  return new Map(
    [...requirements].map(([key, set]) => [
      key,
      found.has(key) ? { ...set, minValues: found.get(key) as number } : set,
    ]),
  )
}

/** Concrete labels for keys that no provider fills in (scheduling.md 11.3). */
function customLabels(requirements: Requirements, wellKnown: ReadonlySet<string>): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [key, set] of requirements) {
    if (wellKnown.has(key) || key === labels.hostname || operatorOf(set) === 'DoesNotExist') continue
    const value = anyValue(set)
    if (value !== undefined) result[key] = value
  }
  return result
}

/** Daemon overhead that is the same or more on every type left. */
function commonOverhead(types: readonly CompiledType[], template: Template): Resources {
  const [first, ...rest] = types.map(template.overheadOf)
  if (first === undefined) return {}
  return Object.fromEntries(
    Object.entries(first).flatMap(([name, amount]) => {
      const all = rest.map((overhead) => overhead[name])
      return all.includes(undefined) ? [] : [[name, Math.min(amount, ...(all as number[]))]]
    }),
  )
}
