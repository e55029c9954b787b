/** Why a pod is pending (ask.md 2). */
import { type NodePool, type Pod, podRequests } from '@tenon/api'
import { type PodReason, renderTemplateReason } from '@tenon/engine'
import type { PendingDecision, UnreadyPool } from '@tenon/operator'
import { type OutlookCase, type PodOutlook, podOutlooks } from '@tenon/operator/questions'
import { rfc3339 } from '@tenon/runtime'
import { MissFinder, type Misses, reasonAlone } from '../misses/find.ts'
import { TypesThatHold } from '../misses/types-that-hold.ts'
import type { StudyFacts } from '../study/study.ts'
import { ExistingNodes, type NodesAnswer } from './existing-nodes.ts'

/** Why one NodePool does not fit a pod. */
export interface PoolAnswer {
  readonly nodePool: string
  readonly weight: number
  /** The engine's reason, or what keeps the NodePool from launching. */
  readonly code: string
  readonly message: string
}

export interface PendingExplanation extends Misses {
  readonly case: OutlookCase
  /** Code of the reason for the pod as a whole. */
  readonly code: string
  /** One sentence. */
  readonly summary: string
  /** When it is tried again if nothing changes before, RFC 3339; absent if that is not known. */
  readonly nextTryAt?: string
  /** In order of weight. */
  readonly nodePools: readonly PoolAnswer[]
  /** Whether existing nodes fit; only if the pod waits. */
  readonly nodes?: NodesAnswer
}

export interface PendingOptions {
  /** Time limit for finding changes that would help, for all pods of an answer together; 0: do not search. */
  readonly missesMs: number
}

/** Explains the pods of one decision. Create one per answer, as the time limit is for all of its pods. */
export class PendingExplainer {
  readonly #study: StudyFacts
  readonly #decision: PendingDecision
  readonly #pools: ReadonlyMap<string, NodePool>
  readonly #unready: readonly UnreadyPool[]
  #finder: MissFinder | undefined
  /** Pods of the same shape share a reason. */
  readonly #answers = new Map<PodReason | undefined, readonly PoolAnswer[]>()
  /** Milliseconds spent on finding changes that would help. */
  #spentMs = 0
  #nodes: ExistingNodes | undefined
  #types: TypesThatHold | undefined
  /** By UID of the pod; computed on first use. */
  #outlooks: ReturnType<typeof podOutlooks> | undefined

  constructor(study: StudyFacts, decision: PendingDecision) {
    this.#study = study
    this.#decision = decision
    const { operator } = study
    this.#pools = new Map(operator.caches.nodePools.list().map((pool) => [pool.metadata.name, pool]))
    this.#unready = operator.questions().unreadyPools()
  }

  /** @returns undefined if the pod does not wait for a node. */
  async explain(pod: Pod, { missesMs }: PendingOptions): Promise<PendingExplanation | undefined> {
    const outlook = this.#outlookOf(pod)
    if (outlook === undefined) return undefined
    const { case: what, code, reason, summary, untilMs } = outlook
    const told = { case: what, code, ...(untilMs !== undefined && { nextTryAt: rfc3339(untilMs) }) }
    if (what !== 'waits') return { ...told, summary, nodePools: [], misses: [], untried: 0 }
    this.#nodes ??= new ExistingNodes(this.#study.operator)
    const nodes = this.#nodes.answer(pod)
    const nodePools = this.#answers.get(reason) ?? this.#poolAnswers(reason)
    this.#answers.set(reason, nodePools)
    const found =
      missesMs > 0 ? await this.#missesOf(pod, missesMs - this.#spentMs) : { misses: [], untried: 0 }
    return { ...told, summary: summaryOf(summary, nodes), nodePools, nodes, ...found }
  }

  /** The same number for pods that the same instance types would hold, whatever NodePools allow. */
  holdersOf({ spec, status }: Pod): number {
    this.#types ??= new TypesThatHold(this.#decision.input.pools)
    return this.#types.groupOf(podRequests(spec, status))
  }

  async #missesOf(pod: Pod, limitMs: number): Promise<Misses> {
    const { clock } = this.#study
    const begunMs = clock.monotonic()
    this.#finder ??= new MissFinder(this.#study, this.#decision)
    const found = await this.#finder.find(pod, { limitMs })
    this.#spentMs += clock.monotonic() - begunMs
    return found
  }

  #outlookOf({ metadata }: Pod): PodOutlook | undefined {
    this.#outlooks ??= podOutlooks(this.#decision, this.#unready)
    return this.#outlooks.get(metadata.uid)?.()
  }

  #poolAnswers(reason: PodReason | undefined): readonly PoolAnswer[] {
    const own = reasonAlone(reason)
    const answers: Omit<PoolAnswer, 'weight'>[] =
      own?.kind === 'noTemplate'
        ? own.templates.map((each) => ({
            nodePool: each.nodePool,
            code: each.reason.kind,
            message: renderTemplateReason(each.reason, each.nodePool),
          }))
        : []
    const empty = this.#decision.result.poolsWithoutTypes.map(({ nodePool, becauseOfMinValues }) =>
      becauseOfMinValues
        ? {
            nodePool,
            code: 'minValues',
            message:
              'minValues of its requirements leaves no instance type; lower minValues or allow more values in spec.template.spec.requirements',
          }
        : {
            nodePool,
            code: 'noTypes',
            message:
              'its requirements leave no instance type that can be bought; widen spec.template.spec.requirements',
          },
    )
    const unready = this.#unready.map(({ nodePool, code, because }) => ({ nodePool, code, message: because }))
    return [...answers, ...empty, ...unready]
      .map((answer) => ({ ...answer, weight: this.#pools.get(answer.nodePool)?.spec.weight ?? 0 }))
      .toSorted((a, b) => b.weight - a.weight || (a.nodePool < b.nodePool ? -1 : 1))
  }
}

function summaryOf(summary: string, { fitting }: NodesAnswer): string {
  if (fitting.length === 0) return summary
  const [first = ''] = fitting
  return `${summary}, but kube-scheduler can place it on ${fitting.length === 1 ? `node ${first}` : `${fitting.length} nodes, ${first} among them`}`
}

export async function explainPending(
  study: StudyFacts,
  decision: PendingDecision,
  pod: Pod,
  options: PendingOptions = { missesMs: 5000 },
): Promise<PendingExplanation | undefined> {
  return await new PendingExplainer(study, decision).explain(pod, options)
}
