/** Decisions with one thing changed. */
import { controllerOf, type NodePool, type Pod } from '@tenon/api'
import {
  type PoolInput,
  schedule,
  type SchedulingInput,
  type SchedulingResult,
  TypeReader,
} from '@tenon/engine'
import { type PendingDecision, poolProblems } from '@tenon/operator'
import type { Study } from '../study/study.ts'
import { type Change, edited } from './change.ts'

/** What becomes of the pods of a workload. */
export interface TrialOutcome {
  /** Pods of the workload that get a place, and how many of them wait. */
  readonly running: number
  readonly waiting: number
  /** Where the pod goes: a node that is there or on its way, or a new one. */
  readonly place:
    | { readonly kind: 'node'; readonly name: string }
    | { readonly kind: 'claim'; readonly nodePool: string; readonly instanceType: string }
  /** What all new nodes cost per hour beyond those that are launched anyway; undefined when a price is not known. */
  readonly pricePerHour: number | undefined
}

/** A part of the pods of a decision. */
type Scope = 'all' | 'workload'

/** Decides again about one pending pod and those of its workload. */
export class Trial {
  readonly #study: Study
  readonly #decision: PendingDecision
  readonly #pod: Pod
  readonly #types = new TypeReader()
  readonly #shouldStop: () => boolean
  readonly #signal = new AbortController().signal
  /** UIDs of the pods of its workload that wait, its own among them. */
  readonly #uids: ReadonlySet<string>
  readonly #unpriced: boolean

  /** @param shouldStop says when no more time is left. */
  constructor(study: Study, decision: PendingDecision, pod: Pod, shouldStop: () => boolean) {
    this.#study = study
    this.#decision = decision
    this.#pod = pod
    this.#shouldStop = shouldStop
    const owner = controllerOf(pod)?.uid
    const others = decision.input.pods.filter(
      (each) => owner !== undefined && controllerOf(each)?.uid === owner,
    )
    this.#uids = new Set([pod, ...others].map(uidOf))
    this.#unpriced = hasUnknownPrice(decision.result)
  }

  /** Whether a decision about the workload alone says less than one about all pods. */
  get needsOthers(): boolean {
    const { affinity } = this.#pod.spec
    return (affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).length > 0
  }

  /** @returns undefined when the pod would still wait, or the change is not valid, or time is up. */
  async of(change: Change, scope: Scope): Promise<TrialOutcome | undefined> {
    const input = await this.#changed(change, scope)
    if (input === undefined) return undefined
    const result = schedule(input, { shouldStop: this.#shouldStop, types: this.#types })
    return this.#outcome(result)
  }

  async #changed(change: Change, scope: Scope): Promise<SchedulingInput | undefined> {
    const { input } = this.#decision
    const pods = scope === 'all' ? input.pods : input.pods.filter((pod) => this.#uids.has(uidOf(pod)))
    if (change.target.kind === 'pod') return { ...input, pods: this.#editedPods(pods, change) }
    const pools = await this.#editedPools(change.target.name, change)
    return pools && { ...input, pods, pools }
  }

  #editedPods(pods: readonly Pod[], { operations }: Change): readonly Pod[] {
    const { operator } = this.#study
    const questions = operator.questions()
    return pods.map((pod) => {
      if (!this.#uids.has(uidOf(pod))) return pod
      const { namespace = '', name } = pod.metadata
      const original = operator.caches.pods.get({ namespace, name }) ?? pod
      return questions.readPod(edited(original, operations))
    })
  }

  async #editedPools(name: string, change: Change): Promise<readonly PoolInput[] | undefined> {
    const { operator } = this.#study
    const original = operator.caches.nodePools.get({ name })
    if (original === undefined) return undefined
    const pool = change.kind === 'readyPool' ? original : edited(original, change.operations)
    if (!isValid(pool, this.#study)) return undefined
    const read = await operator.questions().readPool(pool, this.#signal)
    if (read === undefined || read.instanceTypes.length === 0) return undefined
    const { pools } = this.#decision.input
    const isThere = pools.some(({ nodePool }) => nodePool.metadata.name === name)
    if (!isThere) return change.kind === 'readyPool' ? [...pools, read] : undefined
    return pools.map((each) => (each.nodePool.metadata.name === name ? read : each))
  }

  #outcome(result: SchedulingResult): TrialOutcome | undefined {
    const uid = uidOf(this.#pod)
    const claim = result.claims.find(({ pods }) => pods.some((pod) => uidOf(pod) === uid))
    const placement = result.placements.find(({ pod }) => uidOf(pod) === uid)
    if (claim === undefined && placement === undefined) return undefined
    const placed = [...result.claims.flatMap(({ pods }) => pods), ...result.placements.map(({ pod }) => pod)]
    const isPriced = !this.#unpriced && !hasUnknownPrice(result)
    return {
      running: placed.filter((pod) => this.#uids.has(uidOf(pod))).length,
      waiting: this.#uids.size,
      place:
        claim === undefined
          ? { kind: 'node', name: placement?.node ?? '' }
          : { kind: 'claim', nodePool: claim.nodePool, instanceType: claim.instanceTypes[0] ?? '' },
      pricePerHour: isPriced ? result.pricePerHour - this.#decision.result.pricePerHour : undefined,
    }
  }
}

function isValid(pool: NodePool, { snapshot, operator }: Study): boolean {
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
