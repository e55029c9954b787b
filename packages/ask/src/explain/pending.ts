/** Why a pod is pending (ask.md 2). */
import { type NodePool, type Pod, podRequests } from '@tenon/api'
import {
  type Deferral,
  type PodReason,
  renderDeviceOffer,
  renderPodReason,
  renderTemplateReason,
} from '@tenon/engine'
import type { PendingDecision, UnreadyPool } from '@tenon/operator'
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

/**
 * What the next decision does with a pod. `waits`: it fits nowhere. `deferred`: its node is launched later.
 * `newNode`, `node`: it gets a new node, or one that exists or is being launched. `leftOut`: it is not part of
 * decisions. `undecided`: the decision timed out.
 */
type PendingCase = 'waits' | 'deferred' | 'newNode' | 'node' | 'leftOut' | 'undecided'

export interface PendingExplanation extends Misses {
  readonly case: PendingCase
  /** Code of the reason for the pod as a whole. */
  readonly code: string
  /** One sentence. */
  readonly summary: string
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
  #outcomes: ReadonlyMap<string | undefined, () => Outcome> | undefined

  constructor(study: StudyFacts, decision: PendingDecision) {
    this.#study = study
    this.#decision = decision
    const { operator } = study
    this.#pools = new Map(operator.caches.nodePools.list().map((pool) => [pool.metadata.name, pool]))
    this.#unready = operator.questions().unreadyPools()
  }

  /** @returns undefined if the pod does not wait for a node. */
  async explain(pod: Pod, { missesMs }: PendingOptions): Promise<PendingExplanation | undefined> {
    const outcome = this.#outcomeOf(pod)
    if (outcome === undefined) return undefined
    if (outcome.case !== 'waits') return { ...outcome, nodePools: [], misses: [], untried: 0 }
    this.#nodes ??= new ExistingNodes(this.#study.operator)
    const nodes = this.#nodes.answer(pod)
    const nodePools = this.#answers.get(outcome.reason) ?? this.#poolAnswers(outcome.reason)
    this.#answers.set(outcome.reason, nodePools)
    const found =
      missesMs > 0 ? await this.#missesOf(pod, missesMs - this.#spentMs) : { misses: [], untried: 0 }
    const { case: what, code } = outcome
    return { case: what, code, summary: summaryOf(outcome.summary, nodes), nodePools, nodes, ...found }
  }

  /** Names of the instance types that would hold the pod, whatever NodePools allow. */
  holdersOf({ spec, status }: Pod): string {
    this.#types ??= new TypesThatHold(this.#decision.input.pools)
    return this.#types.namesFor(podRequests(spec, status)).join(' ')
  }

  async #missesOf(pod: Pod, limitMs: number): Promise<Misses> {
    const { clock } = this.#study
    const begunMs = clock.monotonic()
    this.#finder ??= new MissFinder(this.#study, this.#decision)
    const found = await this.#finder.find(pod, { limitMs })
    this.#spentMs += clock.monotonic() - begunMs
    return found
  }

  #outcomeOf({ metadata }: Pod): Outcome | undefined {
    this.#outcomes ??= new Map(outcomesOf(this.#decision))
    return this.#outcomes.get(metadata.uid)?.()
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

interface Outcome {
  readonly case: PendingCase
  readonly code: string
  readonly summary: string
  readonly reason?: PodReason
}

/** The outcome of every pod of a decision, by UID. */
function* outcomesOf({
  input,
  result,
}: PendingDecision): Generator<readonly [string | undefined, () => Outcome], void, undefined> {
  for (const pod of result.undecided)
    yield [
      pod.metadata.uid,
      () => ({
        case: 'undecided',
        code: 'undecided',
        summary: 'The decision ended before it came to this pod',
      }),
    ]
  for (const { pod, reason } of [...input.ignored, ...input.refused])
    yield [
      pod.metadata.uid,
      () => ({ case: 'leftOut', code: 'leftOut', summary: `Nothing is launched for it: ${reason}` }),
    ]
  for (const { pod, node } of result.placements)
    yield [
      pod.metadata.uid,
      () => ({ case: 'node', code: 'placed', summary: `It has a place on node ${node}` }),
    ]
  for (const { claim, because } of result.deferred)
    for (const pod of claim.pods)
      yield [
        pod.metadata.uid,
        () => ({
          case: 'deferred',
          code: because.kind,
          summary: deferralText(because, claim.nodePool),
        }),
      ]
  for (const { nodePool, instanceTypes, pods } of result.claims)
    for (const pod of pods)
      yield [
        pod.metadata.uid,
        () => ({
          case: 'newNode',
          code: 'newNode',
          summary: `The next decision launches a node of NodePool ${nodePool} for it (${instanceTypes[0] ?? ''})`,
        }),
      ]
  for (const { pod, reason } of result.failures) yield [pod.metadata.uid, () => waits(reason)]
}

function waits(reason: PodReason): Outcome {
  const summary =
    reason.kind === 'noTemplate'
      ? sentence([...(reason.devices ?? []).map(renderDeviceOffer), 'no NodePool can launch a node for it'])
      : `It waits: ${renderPodReason(reason)}`
  return { case: 'waits', code: reason.kind, summary, reason }
}

function sentence(clauses: readonly string[]): string {
  const text = clauses.join('; ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function summaryOf(summary: string, { fitting }: NodesAnswer): string {
  if (fitting.length === 0) return summary
  const [first = ''] = fitting
  return `${summary}, but kube-scheduler can place it on ${fitting.length === 1 ? `node ${first}` : `${fitting.length} nodes, ${first} among them`}`
}

function deferralText(because: Deferral, nodePool: string): string {
  switch (because.kind) {
    case 'offeringsOnTrial':
      return `Its node of NodePool ${nodePool} waits for another launch to find out whether the offering can be bought again`
    case 'limitReserved':
      return `Nodes on their way take what is left of the limit of ${because.limit} of NodePool ${nodePool}`
    case 'quotaReserved':
      return `Nodes on their way take what is left of ${because.limit} of CapacityQuota ${because.quota}`
  }
}

export async function explainPending(
  study: StudyFacts,
  decision: PendingDecision,
  pod: Pod,
  options: PendingOptions = { missesMs: 5000 },
): Promise<PendingExplanation | undefined> {
  return await new PendingExplainer(study, decision).explain(pod, options)
}
