/** Why the pods of a PodGroup are pending (ask.md 2, gangs.md 7.7). */
import { counted, isConditionTrue, type NodeClaim, type Pod, podGroupKinds } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import type { PendingDecision } from '@tenon/operator'
import { isProvisionable, keyOf } from '@tenon/operator/objects'
import type { Study } from '../study/study.ts'
import { type AsOf, asOf } from './as-of.ts'
import { type ClaimPhase, claimPhase } from './claim-phase.ts'
import { PendingExplainer, type PendingExplanation, type PendingOptions } from './pending.ts'

/**
 * `short`: fewer pods exist than must run together. `waits`: the group as a whole fits nowhere. `launches`: the
 * next decision launches nodes for it. `planned`: its nodes are being launched. `runs`: enough of its pods have
 * a node. `other`: it is not part of decisions.
 */
type GroupCase = 'short' | 'waits' | 'launches' | 'planned' | 'runs' | 'other'

/** The pods of a group that have not terminated. */
export interface GroupPods {
  readonly bound: number
  /** Without a node, but planned for one that exists or is being launched. */
  readonly planned: number
  /** With neither a node nor a plan. */
  readonly waiting: number
  /** Of the waiting ones, those with scheduling gates. */
  readonly gated: number
}

export interface GroupClaim {
  readonly name: string
  /** Absent once its node is ready. */
  readonly phase?: ClaimPhase
}

export interface PodGroupExplanation {
  readonly namespace: string
  readonly name: string
  /** `podgroups.GROUP`: three kinds are called PodGroup. */
  readonly resource: string
  readonly asOf: AsOf
  readonly case: GroupCase
  readonly code: string
  readonly summary: string
  /** Number of pods that must run together; 0 if they run independently. */
  readonly minCount: number
  readonly pods: GroupPods
  /** Node label whose value all pods must share. */
  readonly topologyKey?: string
  /** Launched for the group, and kept until it runs. */
  readonly nodeClaims: readonly GroupClaim[]
  /** `namespace/name` of the pod that does not fit beside the others. */
  readonly member?: string
  /** Why that pod does not fit, and what would let the whole group run. */
  readonly pending?: PendingExplanation
}

type Known = NonNullable<ReturnType<Study['operator']['state']['podGroups']['get']>>
type Found = Pick<PodGroupExplanation, 'case' | 'code' | 'summary'> &
  Partial<Pick<PodGroupExplanation, 'member' | 'pending'>>

/** API groups of the kinds called PodGroup, Kubernetes' own first. */
export const podGroupApis: readonly string[] = [
  podGroupKinds.kubernetes[0]?.group ?? '',
  podGroupKinds.coscheduling.group,
  podGroupKinds.volcano.group,
]

/** Explains the groups of one snapshot. */
export class PodGroupExplainer {
  readonly #study: Study
  #decided: Promise<PendingDecision> | undefined

  constructor(study: Study) {
    this.#study = study
  }

  /** All groups of the snapshot, as `[API group, namespace, name]`. */
  all(): readonly (readonly [api: string, namespace: string, name: string])[] {
    return this.#study.operator.state.podGroups.caches.flatMap((cache) =>
      cache
        .list()
        .map(({ metadata }) => [cache.type.group, metadata.namespace ?? '', metadata.name] as const),
    )
  }

  /**
   * @param api API group of the kind.
   * @returns undefined if there is no such group, or its kind is not read.
   */
  async explain(
    api: string,
    namespace: string,
    name: string,
    options: PendingOptions,
  ): Promise<PodGroupExplanation | undefined> {
    const { podGroups } = this.#study.operator.state
    const ref = podGroups.ref(`podgroups.${api}/${namespace}/${name}`)
    const group = ref && podGroups.get(ref)
    if (group === undefined) return undefined
    const claims = this.#claimsOf(group)
    const found = await this.#found(group, claims, options)
    const { minCount, topologyKey } = group
    return {
      namespace,
      name,
      resource: `podgroups.${api}`,
      asOf: asOf(this.#study.snapshot),
      minCount,
      pods: this.#podsOf(group),
      ...(topologyKey !== undefined && { topologyKey }),
      nodeClaims: claims.map((claim) => {
        const phase = claimPhase(this.#study, claim)
        return { name: claim.metadata.name, ...(phase && { phase }) }
      }),
      ...found,
    }
  }

  async #found(group: Known, claims: readonly NodeClaim[], options: PendingOptions): Promise<Found> {
    const { minCount, ref } = group
    const { bound, planned, waiting, gated } = this.#podsOf(group)
    const left = this.#members(group).filter((pod) => this.#waits(pod))
    if (bound >= minCount && bound > 0 && waiting === 0)
      return { case: 'runs', code: 'runs', summary: `${bound} of its pods have a node` }
    if (bound + planned + waiting - gated < minCount)
      return {
        case: 'short',
        code: 'podGroupShort',
        summary: sentence(
          renderPodReason({
            kind: 'podGroupShort',
            group: ref.id,
            members: planned + waiting - gated,
            bound,
            minCount,
          }),
          ref.id,
        ),
      }
    if (bound + planned >= minCount && waiting === 0 && planned > 0) return plannedFor(claims, planned)
    if (!left.some(isProvisionable))
      return {
        case: 'other',
        code: 'notWaiting',
        summary:
          left.length === 0
            ? 'It has no pod that waits'
            : 'kube-scheduler has not called any of its pods unschedulable, and no node is launched before that',
      }
    return await this.#decidedAbout(group, left, options)
  }

  async #decidedAbout(group: Known, left: readonly Pod[], options: PendingOptions): Promise<Found> {
    this.#decided ??= this.#study.decide()
    const decision = await this.#decided
    const { id } = group.ref
    const uids = new Set(left.map(({ metadata }) => metadata.uid))
    const { refused } = decision.input
    const hold = refused.find(({ pod }) => uids.has(pod.metadata.uid))
    const outcome = decision.result.podGroups?.find((each) => each.id === id)
    if (outcome === undefined || outcome.kind === 'placed') {
      const stranded = decision.result.failures.find(({ pod }) => uids.has(pod.metadata.uid))
      if (stranded !== undefined) return await this.#withPod(decision, stranded.pod, options)
      if (outcome === undefined)
        return {
          case: hold === undefined ? 'other' : 'waits',
          code: hold === undefined ? 'notDecided' : 'leftOut',
          summary:
            hold === undefined
              ? 'The next decision is not about it'
              : `Nothing is launched for it: ${hold.reason}`,
        }
      return launches(decision, uids, outcome.domain)
    }
    const { reason } = outcome
    const member =
      (reason.kind === 'podGroup'
        ? left.find(({ metadata }) => metadata.uid === reason.member)
        : undefined) ?? left[0]
    const summary = sentence(renderPodReason(reason), id)
    if (member === undefined) return { case: 'waits', code: reason.kind, summary }
    const found = await this.#withPod(decision, member, options)
    return { ...found, case: 'waits', code: reason.kind, summary }
  }

  async #withPod(decision: PendingDecision, pod: Pod, options: PendingOptions): Promise<Found> {
    const pending = await new PendingExplainer(this.#study, decision).explain(pod, options)
    return {
      case: 'waits',
      code: pending?.code ?? 'notDecided',
      summary: pending?.summary ?? 'The next decision is not about it',
      member: keyOf(pod.metadata),
      ...(pending && { pending }),
    }
  }

  #members({ ref }: Known): readonly Pod[] {
    return this.#study.operator.state.podGroups
      .members(ref.id)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }

  #podsOf(group: Known): GroupPods {
    const members = this.#members(group)
    const bound = members.filter(({ spec }) => (spec.nodeName ?? '') !== '').length
    const waiting = members.filter((pod) => this.#waits(pod))
    const gated = waiting.filter(({ spec }) => (spec.schedulingGates ?? []).length > 0).length
    return { bound, planned: members.length - bound - waiting.length, waiting: waiting.length, gated }
  }

  /** Whether a pod has neither a node nor a plan. */
  #waits({ metadata, spec }: Pod): boolean {
    return (
      (spec.nodeName ?? '') === '' && this.#study.operator.state.plans.get(metadata.uid ?? '') === undefined
    )
  }

  #claimsOf({ ref }: Known): readonly NodeClaim[] {
    const { nodeClaims } = this.#study.operator.caches
    return nodeClaims
      .byIndex('podGroup', ref.id)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }
}

function plannedFor(claims: readonly NodeClaim[], planned: number): Found {
  const ready = claims.filter((claim) => isConditionTrue(claim, 'Initialized')).length
  return {
    case: 'planned',
    code: 'planned',
    summary:
      claims.length === 0
        ? `${planned} of its pods are planned for nodes that are there`
        : `${planned} of its pods planned; ${counted(claims.length, 'NodeClaim')} launched for it, ${ready} of them ready. Their nodes open together once all are`,
  }
}

function launches(
  { result }: PendingDecision,
  uids: ReadonlySet<string | undefined>,
  domain: string | undefined,
): Found {
  const own = result.claims.filter(({ pods }) => pods.some(({ metadata }) => uids.has(metadata.uid)))
  const where = domain === undefined ? '' : `, all in ${domain}`
  return {
    case: 'launches',
    code: 'launches',
    summary:
      own.length === 0
        ? `The next decision has a place for its pods on nodes that are there${where}`
        : `The next decision launches ${counted(own.length, 'node')} for it${where}`,
  }
}

/** Builds a sentence about the group `id`. */
function sentence(text: string, id: string): string {
  return text.startsWith(id) ? `It${text.slice(id.length)}` : text.charAt(0).toUpperCase() + text.slice(1)
}
