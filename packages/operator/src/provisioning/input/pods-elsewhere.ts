/**
 * Which pods are left to other controllers of the cluster. Each pod belongs to the first NodePool that admits it, by
 * weight and name, and so to the controller that serves that. Only specs and labels count, which all controllers see
 * alike: if limits or prices counted, two controllers could both launch for a pod, or neither.
 */
import {
  type InstanceType,
  labels,
  nodeClassLabel,
  type NodePool,
  ownValue,
  type Pod,
  requestsOf,
  type Resources,
  tolerates,
  wellKnownLabels,
} from '@tenon/api'
import {
  allocatableOf,
  compatible,
  labelRequirements,
  merged,
  overlaps,
  parseRequirements,
  requiredAlternatives,
  type Requirements,
} from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'
import { perObject } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { controllerOf } from '../../state/nodepools/node-pool-selection.ts'
import { isUnreadable } from '../../state/readable.ts'

interface Sources {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged' | 'isWellFormed'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes' | 'nodeClasses' | 'wellKnownLabels'>
}

interface Candidate {
  readonly pool: NodePool
  readonly requirements: Requirements
  /** Undefined if they cannot be listed, as those of another provider. */
  readonly types: readonly InstanceType[] | undefined
}

export class PodsElsewhere {
  readonly #sources: Sources
  readonly #candidates: readonly Candidate[]
  readonly #known: ReadonlySet<string>
  /** The NodePool of each spec; pods of a workload share theirs. */
  readonly #poolOfSpec = new Map<Pod['spec'], NodePool | undefined>()

  private constructor(sources: Sources, candidates: readonly Candidate[]) {
    this.#sources = sources
    this.#candidates = candidates
    this.#known = new Set([...wellKnownLabels, ...sources.provider.wellKnownLabels])
  }

  /** Lists the types of all NodePools that have a controller. */
  static async read(sources: Sources, signal: AbortSignal): Promise<PodsElsewhere> {
    const pools = sources.caches.nodePools
      .list()
      .filter(
        (pool) =>
          controllerOf(pool) !== undefined &&
          pool.metadata.deletionTimestamp === undefined &&
          pool.spec.replicas === undefined &&
          !isUnreadable(pool),
      )
      .toSorted(
        (a, b) => (b.spec.weight ?? 0) - (a.spec.weight ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1),
      )
    const candidates = pools.map(async (pool) => ({
      pool,
      requirements: requirementsOfPool(pool),
      types: await typesOf(sources, pool, signal),
    }))
    return new PodsElsewhere(sources, await Promise.all(candidates))
  }

  /** Judges pods ahead of {@link poolOf}, in steps. */
  *judge(pods: readonly Pod[]): Generator<undefined, void, undefined> {
    for (const pod of pods) {
      this.poolOf(pod)
      yield
    }
  }

  /** The NodePool of another controller that the pod belongs to; undefined if this one decides about it. */
  poolOf(pod: Pod): NodePool | undefined {
    if (!this.#sources.state.isWellFormed(pod)) return undefined
    if (!this.#poolOfSpec.has(pod.spec)) {
      const first = this.#candidates.find((candidate) => this.#admits(candidate, pod))?.pool
      const isOwn = first === undefined || this.#sources.state.isManaged(first)
      this.#poolOfSpec.set(pod.spec, isOwn ? undefined : first)
    }
    return this.#poolOfSpec.get(pod.spec)
  }

  #admits({ pool, requirements, types }: Candidate, pod: Pod): boolean {
    const { tolerations = [] } = pod.spec
    const taints = (pool.spec.template.spec.taints ?? []).filter(
      ({ effect }) => effect !== 'PreferNoSchedule',
    )
    if (!taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)))) return false
    const requests = requestsOf(pod)
    return requiredAlternatives(pod.spec).some((wanted) => {
      if (!compatible(requirements, wanted, this.#known)) return false
      const all = merged(requirements, wanted)
      return types === undefined || types.some((type) => holds(type, all, requests))
    })
  }
}

async function typesOf(
  { provider }: Sources,
  pool: NodePool,
  signal: AbortSignal,
): Promise<readonly InstanceType[] | undefined> {
  const { group, kind } = pool.spec.template.spec.nodeClassRef
  if (!provider.nodeClasses.some((type) => type.group === group && type.kind === kind)) return undefined
  try {
    return await provider.getInstanceTypes(pool, signal)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

function requirementsOfPool({ metadata, spec: { template } }: NodePool): Requirements {
  const ref = template.spec.nodeClassRef
  return merged(
    parseRequirements(template.spec.requirements),
    labelRequirements({
      ...template.metadata?.labels,
      [labels.nodePool]: metadata.name,
      [nodeClassLabel(ref)]: ref.name,
    }),
  )
}

const readType = perObject((type: InstanceType) => ({
  requirements: parseRequirements(type.requirements),
  offerings: type.offerings.map(({ requirements }) => parseRequirements(requirements)),
  allocatable: allocatableOf(type),
}))

/** Whether an instance of the type may hold the pod. That an offering has no capacity now is not known to all. */
function holds(type: InstanceType, wanted: Requirements, requests: Resources): boolean {
  const { requirements, offerings, allocatable } = readType(type)
  return (
    Object.entries(requests).every(
      ([name, amount]) => amount <= 0 || (ownValue(allocatable, name) ?? 0) >= amount,
    ) &&
    overlaps(requirements, wanted) &&
    offerings.some((offering) => overlaps(offering, wanted))
  )
}
