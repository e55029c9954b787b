/** The properties of a pod that decide where it may go; pods with equal properties share one shape. */
import { labels, type PodSpec, requiredFeatures, type Resources, type Toleration } from '@tenon/api'
import { oneOf, type ValueSet } from '../../requirements/requirement.ts'
import {
  merged,
  podRequirements,
  parseRequirements,
  requiredAlternatives,
  type Requirements,
  requirementsOf,
} from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { PodOrigin } from '../../input/input.ts'
import type { ServedResources } from '../devices/served-resources.ts'
import type { SelectablePod, ShapeSource } from '../problem/problem.ts'
import { textOf } from '../problem/spec-reading.ts'
import { type HostPort, hostPortsOf } from '../../input/host-ports.ts'
import { hasOtherTerm, leftTerms, relax } from './relaxation.ts'
import type { Amounts, ResourceSpace } from './resource-space.ts'

/** Requirements on labels. Host names are separate, as every node and claim has its own. */
export interface NodeDemand {
  readonly state: StateId
  readonly host: ValueSet | undefined
}

export interface PodShape {
  readonly index: number
  /** The spec after relaxation. */
  readonly spec: PodSpec
  /** The spec before relaxation. */
  readonly whole: PodSpec
  /** What selectors of other pods see. */
  readonly selectable: SelectablePod
  readonly origin: PodOrigin
  /** One object for all shapes with equal requests. */
  readonly amounts: Amounts
  /** The required rules of the pod, without preferences and volumes; its topology domains follow from them. */
  readonly strict: NodeDemand
  /** The required rules and the heaviest preference. */
  readonly wanted: NodeDemand
  /** The required rules before relaxation, one entry per node affinity term. */
  readonly required: () => readonly NodeDemand[]
  readonly tolerations: readonly Toleration[]
  /** Features that the node must declare. */
  readonly features: readonly string[]
  readonly hostPorts: readonly HostPort[]
  /** Requirements of the volumes, one of which must be met; never empty. */
  readonly volumes: readonly NodeDemand[]
  readonly hasUnknownVolumes: boolean
  /** Whether it has ResourceClaims although the problem has no devices. */
  readonly usesResourceClaims: boolean
  /** ResourceClaims (`namespace/name`) of one of its pods. */
  readonly claims: readonly string[]
  /** Extended resources that it requests and that devices serve where a node has none. */
  readonly servedResources: readonly string[]
  /** Whether it has ResourceClaims, or {@link servedResources}. */
  readonly usesDevices: boolean
  /** Whether a node without devices for its claims may have them later. */
  readonly sharesClaims: boolean
  /** Whether {@link relaxed} only moves on to the next of several node affinity terms. */
  readonly hasOtherTerm: boolean
  /** The pod with one preference less; undefined when nothing is left to relax. */
  readonly relaxed: () => PodShape | undefined
  /** The pod on nodes whose label has this value; its topology rules do not change. */
  readonly within: (key: string, value: string) => PodShape
}

/** The properties of a shape that relaxation keeps. */
interface RelaxationInvariants
  extends Pick<
    PodShape,
    | 'amounts'
    | 'features'
    | 'hostPorts'
    | 'servedResources'
    | 'usesDevices'
    | 'usesResourceClaims'
    | 'volumes'
  > {
  /** Requirements in addition to the spec. */
  readonly domain: Requirements
}

const everywhere: Requirements = new Map()

/** Creates shapes; pods that become equal by relaxation get the same object. */
export class PodShapes {
  readonly #states: RequirementStates
  readonly #space: ResourceSpace
  readonly #served: ServedResources
  readonly #toleratePreferNoSchedule: boolean
  readonly #relaxed = new Map<string, PodShape>()
  readonly #amounts = new Map<string, Amounts>()
  readonly #textIds = new Map<string, number>()
  #count = 0

  readonly #areDevicesKnown: boolean

  constructor(
    states: RequirementStates,
    space: ResourceSpace,
    served: ServedResources,
    toleratePreferNoSchedule: boolean,
    areDevicesKnown: boolean,
  ) {
    this.#areDevicesKnown = areDevicesKnown
    this.#states = states
    this.#space = space
    this.#served = served
    this.#toleratePreferNoSchedule = toleratePreferNoSchedule
  }

  /** @throws RangeError or TypeError when the pod is malformed. */
  shapeOf(source: ShapeSource, requests: Resources): PodShape {
    const servedResources = source.hasExtendedClaim ? [] : this.#served.within(requests)
    return this.#make(source.spec, source, {
      amounts: this.#amountsOf(requests),
      features: requiredFeatures(source.spec),
      hostPorts: hostPortsOf(source.spec),
      volumes:
        source.volumeAlternatives.length === 0
          ? [this.#demand(new Map())]
          : source.volumeAlternatives.map((list) => this.#demand(parseRequirements(list))),
      usesResourceClaims: !this.#areDevicesKnown && (source.spec.resourceClaims ?? []).length > 0,
      servedResources,
      usesDevices: source.claims.length > 0 || servedResources.length > 0,
      domain: everywhere,
    })
  }

  #amountsOf(requests: Resources): Amounts {
    const amounts = this.#space.vector(requests)
    const key = amounts.join(' ')
    const known = this.#amounts.get(key)
    if (known === undefined) this.#amounts.set(key, amounts)
    return known ?? amounts
  }

  #make(spec: PodSpec, source: ShapeSource, fixed: RelaxationInvariants): PodShape {
    const { strict, preferred } = podRequirements(spec)
    const { domain, ...given } = fixed
    const wishFor = (requirements: Requirements) => this.#demand(merged(requirements, domain))
    const strictWish = wishFor(strict)
    const index = this.#count++
    let next: PodShape | undefined
    let isRelaxed = false
    let required: readonly NodeDemand[] | undefined
    const within = new Map<string, PodShape>()
    return {
      index,
      spec,
      whole: source.spec,
      selectable: source,
      origin: source.origin,
      ...given,
      strict: strictWish,
      wanted: preferred === strict ? strictWish : wishFor(preferred),
      required: () => (required ??= requiredAlternatives(source.spec).map(wishFor)),
      claims: source.claims,
      sharesClaims: source.sharesClaims,
      tolerations: spec.tolerations ?? [],
      hasUnknownVolumes: source.hasUnknownVolumes,
      hasOtherTerm: hasOtherTerm(spec),
      relaxed: () => {
        if (!isRelaxed) {
          const less = relax(spec, source.spec, this.#toleratePreferNoSchedule)
          next = less && this.#intern(less, source, fixed)
          isRelaxed = true
        }
        return next
      },
      within: (key, value) => {
        const name = `${key}=${value}`
        let shape = within.get(name)
        if (shape === undefined) {
          shape = this.#make(spec, source, { ...fixed, domain: requirementsOf([oneOf(key, value)]) })
          within.set(name, shape)
        }
        return shape
      },
    }
  }

  #intern(spec: PodSpec, source: ShapeSource, fixed: RelaxationInvariants): PodShape {
    const { volumes: _, affinity, ...rest } = spec
    const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {}
    const preferred = [
      nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution,
      podAffinity?.preferredDuringSchedulingIgnoredDuringExecution,
      podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution,
    ]
    const { all, from } = leftTerms(spec)
    const parts: readonly unknown[] = [
      ...Object.entries(rest)
        .filter(([name]) => name !== 'topologySpreadConstraints')
        .flat(),
      podAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
      podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
      // Pods that try their last term are equal whatever their earlier terms were.
      from === all.length - 1 ? all[from] : all,
      // Spread constraints count nodes by all terms of the pod, even relaxed ones.
      spec.topologySpreadConstraints && source.spec.affinity?.nodeAffinity,
      source.labels,
      source.volumeAlternatives,
      source.claims,
    ]
    const key = JSON.stringify([
      parts.map((part) => this.#textIdOf(part)),
      from === all.length - 1 ? -1 : from,
      [...preferred, spec.topologySpreadConstraints].map((list) => list?.map((each) => this.#textIdOf(each))),
      source.namespace,
      source.origin,
      // The spec does not contain the number of volumes to attach.
      [...fixed.amounts],
      [...fixed.domain.values()].map((set) => [set.key, ...set.values]),
    ])
    let shape = this.#relaxed.get(key)
    if (shape === undefined) {
      shape = this.#make(spec, source, fixed)
      this.#relaxed.set(key, shape)
    }
    return shape
  }

  /** Equal for equal parts. */
  #textIdOf(part: unknown): number {
    const text = textOf(part)
    let id = this.#textIds.get(text)
    if (id === undefined) {
      id = this.#textIds.size
      this.#textIds.set(text, id)
    }
    return id
  }

  #demand(requirements: Requirements): NodeDemand {
    const host = requirements.get(labels.hostname)
    if (host === undefined) return { state: this.#states.idOf(requirements), host }
    const others = [...requirements.values()].filter((set) => set !== host)
    return { state: this.#states.idOf(requirementsOf(others)), host }
  }
}
