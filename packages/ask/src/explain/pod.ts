/** Why a pod is pending, or why it runs on its node (ask.md 2). */
import type { NodeClaim, Pod } from '@tenon/api'
import type { JournalEntry, PendingDecision } from '@tenon/operator'
import { isActive, isDaemonPod, isProvisionable, keyOf, missingGroupText } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import type { Study } from '../study/study.ts'
import { type AsOf, asOf } from './as-of.ts'
import { type ClaimPhase, claimPhase } from './claim-phase.ts'
import { PendingExplainer, type PendingExplanation, type PendingOptions } from './pending.ts'
import { PodGroupExplainer } from './pod-group.ts'
import { holdsOf, type PodHold } from './running-pod.ts'

/**
 * `planned`: a node that exists or is being launched is meant for it. `other`: Tenon does not launch nodes for
 * it.
 */
type PodCase = 'waits' | 'planned' | 'running' | 'ended' | 'other'

/** The node that a pod is planned for or runs on. */
export interface PodPlace {
  readonly node?: string
  readonly nodeClaim?: string
  /** When the plan was made, RFC 3339. */
  readonly plannedAt?: string
  /** Absent once the node is ready. */
  readonly phase?: ClaimPhase
}

export interface PodExplanation {
  readonly namespace: string
  readonly name: string
  readonly asOf: AsOf
  readonly case: PodCase
  readonly code: string
  readonly summary: string
  readonly place?: PodPlace
  /** The journal entry of the launch that names the pod. */
  readonly decision?: JournalEntry
  readonly holds?: readonly PodHold[]
  readonly pending?: PendingExplanation
}

export interface ExplainedPod {
  readonly pod: Pod
  readonly explanation: PodExplanation
  /** The same for pods that the same instance types would hold: only those are helped by the same changes. */
  readonly holders?: number
}

/** Explains the pods of one snapshot. The decision about pending pods is made on first use. */
export class PodExplainer {
  readonly #study: Study
  #decided: Promise<PendingDecision> | undefined
  #pending: PendingExplainer | undefined
  #groups: PodGroupExplainer | undefined
  /** Nodes of the pods without one, by UID of the pod. */
  #placed: ReadonlyMap<string | undefined, string> | undefined

  constructor(study: Study) {
    this.#study = study
  }

  /** All pods that have no node, whatever they wait for. Those that end need none any more. */
  waiting(): readonly Pod[] {
    const { pods } = this.#study.operator.caches
    return pods.list().filter((pod) => (pod.spec.nodeName ?? '') === '' && isActive(pod))
  }

  /** Pods with what is said of them, without changes that would help. */
  async explained(pods: readonly Pod[]): Promise<readonly ExplainedPod[]> {
    const explained: ExplainedPod[] = []
    for (const pod of pods) {
      const explanation = await this.explain(pod, { missesMs: 0 })
      const holders = explanation.pending?.case === 'waits' ? this.#pending?.holdersOf(pod) : undefined
      explained.push({ pod, explanation, ...(holders !== undefined && { holders }) })
    }
    return explained
  }

  async explain(pod: Pod, options: PendingOptions): Promise<PodExplanation> {
    const { namespace = '', name } = pod.metadata
    const found = await this.#found(pod, options)
    return { namespace, name, asOf: asOf(this.#study.snapshot), ...found }
  }

  async #found(pod: Pod, options: PendingOptions): Promise<Found> {
    const { nodeName = '' } = pod.spec
    const { phase } = pod.status ?? {}
    if (phase === 'Succeeded' || phase === 'Failed')
      return { case: 'ended', code: phase, summary: `It has ended (${phase}) and keeps no node` }
    if (nodeName !== '') return this.#running(pod, nodeName)
    const planned = this.#planned(pod)
    if (planned !== undefined) return planned
    if (!isProvisionable(pod)) return await this.#silent(pod)
    return await this.#waiting(pod, options)
  }

  /** A pod without a condition of the scheduler may wait for other pods of its group, or for the group itself. */
  async #silent(pod: Pod): Promise<Found> {
    const plain: Found = { case: 'other', ...notWaiting(pod) }
    const { podGroups } = this.#study.operator.state
    const isGated = (pod.spec.schedulingGates ?? []).length > 0
    const ref = isGated || pod.metadata.deletionTimestamp !== undefined ? undefined : podGroups.of(pod)
    if (ref === undefined) return plain
    if (podGroups.get(ref) === undefined)
      return {
        case: 'other',
        code: 'podGroupMissing',
        summary: `It waits: ${missingGroupText(ref, podGroups.problemOf(ref))}`,
      }
    const [resource = ''] = ref.id.split('/')
    const api = resource.replace(/^podgroups\./, '')
    this.#groups ??= new PodGroupExplainer(this.#study)
    const group = await this.#groups.explain(api, ref.namespace, ref.name, { missesMs: 0 })
    if (group?.case !== 'short') return plain
    return {
      case: 'other',
      code: group.code,
      summary: `It waits: ${group.summary.replace(/^It /, `${ref.id} `)}`,
    }
  }

  #running(pod: Pod, node: string): Found {
    const decision = this.#launchFor(pod)
    const { caches, state } = this.#study.operator
    const object = caches.nodes.get({ name: node })
    const claim = object && state.claimOf(object)
    const isFor = decision !== undefined && decision.nodeClaims[0] === claim?.metadata.name
    const why = isFor ? 'which was launched for it' : 'where kube-scheduler put it'
    const holds = holdsOf(this.#study, pod)
    const blocking = holds.filter(({ blocks }) => blocks)
    const keeps =
      blocking.length === 0
        ? 'it does not keep the node from going'
        : `it keeps the node from going (${blocking.map(({ kind }) => kind).join(', ')})`
    return {
      case: 'running',
      code: 'running',
      summary: `It is on node ${node}, ${why}; ${keeps}`,
      place: { node, ...(claim && { nodeClaim: claim.metadata.name }) },
      ...(isFor && { decision }),
      holds,
    }
  }

  #planned(pod: Pod): Found | undefined {
    const plan = this.#study.operator.state.plans.get(pod.metadata.uid ?? '')
    if (plan === undefined) return undefined
    const { target, madeMs } = plan
    return this.#onItsWay(pod, target.name, { plannedAt: rfc3339(madeMs) })
  }

  /** @param name of a NodeClaim or a Node. */
  #onItsWay(pod: Pod, name: string, more: Pick<PodPlace, 'plannedAt'> = {}): Found {
    const { caches, state } = this.#study.operator
    const node = caches.nodes.get({ name })
    const claim: NodeClaim | undefined =
      caches.nodeClaims.get({ name }) ?? (node === undefined ? undefined : state.claimOf(node))
    const phase = claim && claimPhase(this.#study, claim)
    const nodeName = node?.metadata.name ?? claim?.status?.nodeName ?? ''
    const where = claim === undefined ? `node ${name}` : `NodeClaim ${claim.metadata.name}`
    const decision = this.#launchFor(pod)
    return {
      case: 'planned',
      code: phase === undefined ? 'nodeReady' : `waitsFor${phase.waitsFor}`,
      summary: `It is planned for ${where}${phase === undefined ? ', which takes pods now' : `, which is not ${phase.waitsFor} yet`}`,
      place: {
        ...(nodeName !== '' && { node: nodeName }),
        ...(claim && { nodeClaim: claim.metadata.name }),
        ...more,
        ...(phase && { phase }),
      },
      ...(decision && { decision }),
    }
  }

  async #waiting(pod: Pod, options: PendingOptions): Promise<Found> {
    this.#decided ??= this.#study.decide()
    const decision = await this.#decided
    this.#placed ??= new Map(
      decision.result.placements.map((each) => [each.pod.metadata.uid, each.node] as const),
    )
    const node = this.#placed.get(pod.metadata.uid)
    if (node !== undefined) return this.#onItsWay(pod, node)
    this.#pending ??= new PendingExplainer(this.#study, decision)
    const pending = await this.#pending.explain(pod, options)
    if (pending === undefined)
      return { case: 'other', code: 'notDecided', summary: 'The next decision is not about it' }
    return { case: 'waits', code: pending.code, summary: pending.summary, pending }
  }

  #launchFor(pod: Pod): JournalEntry | undefined {
    const key = keyOf(pod.metadata)
    return this.#study.snapshot.journal.findLast(
      ({ kind, pods }) => kind === 'launch' && pods?.names.includes(key) === true,
    )
  }
}

type Found = Omit<PodExplanation, 'namespace' | 'name' | 'asOf'>

function notWaiting(pod: Pod): Pick<Found, 'code' | 'summary'> {
  const { metadata, spec } = pod
  if (metadata.deletionTimestamp !== undefined)
    return { code: 'deleting', summary: 'It is being deleted and is never placed any more' }
  if (isDaemonPod(pod))
    return {
      code: 'daemon',
      summary: 'It belongs to a DaemonSet: it comes with its node, and no node for it',
    }
  const gates = spec.schedulingGates ?? []
  if (gates.length > 0)
    return {
      code: 'gated',
      summary: `Nothing is decided about it until its scheduling gates are removed (${gates.map(({ name }) => name).join(', ')})`,
    }
  const { schedulerName = 'default-scheduler' } = spec
  const scheduler = schedulerName === 'default-scheduler' ? 'kube-scheduler' : `Scheduler ${schedulerName}`
  return {
    code: 'notUnschedulable',
    summary: `${scheduler} has not called it unschedulable, and no node is launched before that`,
  }
}
