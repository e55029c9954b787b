/** Repeats a decision with one change. */
import { controllerOf, type NodePool, type Pod } from '@tenon/api'
import {
  type PodGroupInput,
  type PoolInput,
  schedule,
  type SchedulingInput,
  type SchedulingResult,
  TypeReader,
} from '@tenon/engine'
import type { PendingDecision } from '@tenon/operator'
import { poolProblems } from '@tenon/operator/objects'
import type { StudyFacts } from '../study/study.ts'
import { type Change, edited } from './change.ts'
import { claimOperations, sourceOf } from './claim-changes.ts'
import { changedGroup } from './group-changes.ts'

/** The result of a change for the pods of a workload. */
export interface TrialOutcome {
  /** How many pods of the workload are placed, of those that are pending. */
  readonly running: number
  readonly waiting: number
  /** The pod's place: a node that exists or is being launched, or a new one. */
  readonly place:
    | { readonly kind: 'node'; readonly name: string }
    | { readonly kind: 'claim'; readonly nodePool: string; readonly instanceType: string }
  /** Price per hour of the new nodes, without those that are launched anyway; undefined if a price is unknown. */
  readonly pricePerHour: number | undefined
}

/** Which pods of the decision are decided again. */
type Scope = 'all' | 'workload'

/** The result of one decision, for all of its pods. */
interface Decided {
  /** By UID of the pod. */
  readonly places: ReadonlyMap<string, TrialOutcome['place']>
  /** IDs of the groups that are placed. */
  readonly groups: ReadonlySet<string>
  readonly pricePerHour: number | undefined
}

/** Results that the trials of one decision share: pods of one workload ask for the same ones. */
export class KnownTrials {
  readonly decision: PendingDecision
  readonly types = new TypeReader()
  readonly #decided = new Map<string, Decided | undefined>()
  /** UIDs of the pending pods, by that of their controller. */
  readonly #workloads: ReadonlyMap<string | undefined, readonly string[]>

  constructor(decision: PendingDecision) {
    this.decision = decision
    const groups = Map.groupBy(decision.input.pods, (pod) => controllerOf(pod)?.uid)
    this.#workloads = new Map(Array.from(groups, ([owner, pods]) => [owner, pods.map(uidOf)]))
  }

  /** UIDs of the pending pods with this controller. */
  ownedBy(owner: string): readonly string[] {
    return this.#workloads.get(owner) ?? []
  }

  /** @param isWhole whether the result may be cached; called after `decide`. */
  async of(
    key: string,
    decide: () => Promise<Decided | undefined>,
    isWhole: () => boolean,
  ): Promise<Decided | undefined> {
    if (this.#decided.has(key)) return this.#decided.get(key)
    const decided = await decide()
    if (isWhole()) this.#decided.set(key, decided)
    return decided
  }
}

/** Decides again about a pending pod and its workload. */
export class Trial {
  readonly #study: StudyFacts
  readonly #known: KnownTrials
  readonly #pod: Pod
  readonly #shouldStop: () => boolean
  readonly #signal = new AbortController().signal
  /** UIDs of the pending pods of its workload, including its own. */
  readonly #uids: ReadonlySet<string>
  /** UID of its controller; without one, the id of its group or its own UID. */
  readonly #workload: string
  /** The group it belongs to. */
  readonly #group: PodGroupInput | undefined

  /** @param shouldStop whether time is up. */
  constructor(study: StudyFacts, known: KnownTrials, pod: Pod, shouldStop: () => boolean) {
    this.#study = study
    this.#known = known
    this.#pod = pod
    this.#shouldStop = shouldStop
    const owner = controllerOf(pod)?.uid
    const uid = uidOf(pod)
    this.#group = known.decision.input.podGroups?.find(({ members }) => members.includes(uid))
    this.#workload = owner ?? this.#group?.id ?? uid
    const alike = owner === undefined ? this.#ownerless() : known.ownedBy(owner)
    this.#uids = new Set([uid, ...alike])
  }

  /** UIDs of the group's pods without a controller. */
  #ownerless(): readonly string[] {
    const members = new Set(this.#group?.members)
    return this.#known.decision.input.pods
      .filter((pod) => members.has(uidOf(pod)) && controllerOf(pod) === undefined)
      .map(uidOf)
  }

  /** Whether a decision about the workload alone is not enough, and all pods have to be decided. */
  get needsOthers(): boolean {
    const { affinity } = this.#pod.spec
    return (affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).length > 0
  }

  /** @returns undefined if the pod is still pending, the change is invalid, or time is up. */
  async of(change: Change, scope: Scope): Promise<TrialOutcome | undefined> {
    const { kind, operations, target } = change
    // The result of a NodePool change is the same for all workloads.
    const whose =
      target.kind !== 'nodePool' || scope === 'workload' ? [this.#workload, this.#group?.id] : undefined
    const key = JSON.stringify([whose, scope, kind, target, operations])
    const decided = await this.#known.of(
      key,
      () => this.#decide(change, scope),
      () => !this.#shouldStop(),
    )
    return decided && this.#outcome(decided)
  }

  async #decide(change: Change, scope: Scope): Promise<Decided | undefined> {
    const input = await this.#changed(change, scope)
    if (input === undefined) return undefined
    const { decision, types } = this.#known
    const result = schedule(input, { shouldStop: this.#shouldStop, types })
    const isPriced = !hasUnknownPrice(decision.result) && !hasUnknownPrice(result)
    return {
      places: placesIn(result),
      groups: new Set((result.podGroups ?? []).flatMap(({ kind, id }) => (kind === 'placed' ? [id] : []))),
      pricePerHour: isPriced ? result.pricePerHour - decision.result.pricePerHour : undefined,
    }
  }

  async #changed(change: Change, scope: Scope): Promise<SchedulingInput | undefined> {
    const { input } = this.#known.decision
    const together = new Set([...this.#uids, ...(this.#group?.members ?? [])])
    const pods = scope === 'all' ? input.pods : input.pods.filter((pod) => together.has(uidOf(pod)))
    if (change.target.kind === 'resourceClaim' || change.target.kind === 'resourceClaimTemplate')
      return this.#withClaims({ ...input, pods }, change)
    if (change.target.kind === 'pod') return { ...input, pods: this.#editedPods(pods, change) }
    if (change.target.kind === 'podGroup') {
      const { id } = change.target
      const podGroups = (input.podGroups ?? []).map((group) =>
        group.id === id ? changedGroup(group, change) : group,
      )
      return { ...input, pods, podGroups }
    }
    const pools = await this.#editedPools(change.target.name, change)
    return pools && { ...input, pods, pools }
  }

  /** Applies the change to all claims of the workload's pods that come from the same source. */
  #withClaims(input: SchedulingInput, change: Change): SchedulingInput | undefined {
    const { devices } = input
    if (devices === undefined) return undefined
    const claims = new Map(devices.claims)
    for (const pod of input.pods.filter((each) => this.#uids.has(uidOf(each))))
      for (const name of devices.claimsOf.get(uidOf(pod)) ?? []) {
        const source = sourceOf(pod, name, devices.claims)
        const isIts = source !== undefined && JSON.stringify(source.target) === JSON.stringify(change.target)
        const changed = isIts ? edited(source.claim, claimOperations(change)) : undefined
        if (changed !== undefined) claims.set(name, { ...devices.claims.get(name), ...changed })
      }
    return { ...input, devices: { ...devices, claims } }
  }

  #editedPods(pods: readonly Pod[], { operations }: Change): readonly Pod[] {
    const { operator } = this.#study
    const questions = operator.questions()
    return pods.map((pod) => {
      if (!this.#uids.has(uidOf(pod))) return pod
      const { namespace = '', name } = pod.metadata
      const original = operator.caches.pods.get({ namespace, name }) ?? pod
      // Pods of one workload may have two revisions, and the change may fit only one of them.
      const changed = edited(original, operations)
      return changed === undefined ? pod : questions.readPod(changed)
    })
  }

  async #editedPools(name: string, change: Change): Promise<readonly PoolInput[] | undefined> {
    const { operator } = this.#study
    const original = operator.caches.nodePools.get({ name })
    if (original === undefined) return undefined
    const pool = change.kind === 'readyPool' ? original : edited(original, change.operations)
    if (pool === undefined || !isValid(pool, this.#study)) return undefined
    const read = await operator.questions().readPool(pool, this.#signal)
    if (read === undefined || read.instanceTypes.length === 0) return undefined
    const { pools } = this.#known.decision.input
    const isThere = pools.some(({ nodePool }) => nodePool.metadata.name === name)
    if (!isThere) return change.kind === 'readyPool' ? [...pools, read] : undefined
    return pools.map((each) => (each.nodePool.metadata.name === name ? read : each))
  }

  #outcome({ groups, places, pricePerHour }: Decided): TrialOutcome | undefined {
    const uids = this.#group === undefined ? this.#uids : new Set(this.#group.members)
    const running = [...uids].filter((uid) => places.has(uid))
    // For a group it is sufficient that its minimum runs, whichever pods they are.
    const isWhole = this.#group !== undefined && groups.has(this.#group.id)
    const place = places.get(uidOf(this.#pod)) ?? (isWhole ? places.get(running[0] ?? '') : undefined)
    if (place === undefined) return undefined
    return { running: running.length, waiting: uids.size, place, pricePerHour }
  }
}

function placesIn({ claims, placements }: SchedulingResult): Decided['places'] {
  const places = new Map<string, TrialOutcome['place']>()
  for (const { pod, node } of placements) places.set(uidOf(pod), { kind: 'node', name: node })
  for (const { pods, nodePool, instanceTypes } of claims) {
    const place = { kind: 'claim', nodePool, instanceType: instanceTypes[0] ?? '' } as const
    for (const pod of pods) places.set(uidOf(pod), place)
  }
  return places
}

function isValid(pool: NodePool, { snapshot, operator }: StudyFacts): boolean {
  const { wellKnownLabels, restrictedLabels, restrictedDomains, labelAliases } = snapshot.cloud
  const rules = {
    wellKnownLabels,
    ...(restrictedLabels && { restrictedLabels }),
    ...(restrictedDomains && { restrictedDomains }),
    ...(labelAliases && { labelAliases }),
  }
  return operator.state.isManaged(pool) && poolProblems(pool, rules).length === 0
}

function hasUnknownPrice({ claims }: SchedulingResult): boolean {
  return claims.some(({ pricePerHour }) => pricePerHour === undefined)
}

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? `${metadata.namespace ?? ''}/${metadata.name}`
