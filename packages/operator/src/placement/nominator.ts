/** `pod.nomination`: asks the Kubernetes scheduler to follow the plan (planned-placement.md). */
import {
  type Change,
  compareResourceVersions,
  done,
  isKubeError,
  type KubeClient,
  type ReadFields,
  type ReconcileResult,
} from '@tenon/kube'
import { kinds, type NodeClaim, type Pod } from '@tenon/api'
import { type Clock, Listeners, type Logger } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import { isSameValue } from '../cluster/same-value.ts'
import { nominatedNodeOf } from '../cluster/pods/nominated-pods.ts'
import type { PlanTarget, PodPlan, WrittenNomination } from '../cluster/pods/pod-plans.ts'
import { isTerminating } from '../cluster/pods/pods.ts'
import { resumePlans } from './planned-pods.ts'
import { tradePlaces } from './place-trade.ts'
import { awaitsTwins, hardSpreadOf } from './spread-turn.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { PlacementGate } from './gate.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly placementGate: PlacementGate
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Settings
}

/** Nominations that do not show in the cache are set again after this long: accepted ones, and all others. */
const repeatMs = { accepted: 5000, other: 200 } as const

/** What is read of a pod that was nominated. */
const versionFields: ReadFields = {
  members: { metadata: { members: { resourceVersion: true }, others: false } },
  others: false,
}

/**
 * Writes `status.nominatedNodeName` of pods as their plans say, again and again until they are bound.
 * Keys are pod UIDs. Values that others wrote are left alone.
 */
export class Nominator implements ControllerSpec {
  readonly name = 'pod.nomination'
  /** What the client's default rate lets through while an answer takes 100 ms; each needs a connection of its own. */
  readonly concurrency = { least: 20, most: 500 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly #deps: Dependencies
  /** When the first pod of a decision had a Node to go to, by the claims of the decision; Unix milliseconds. */
  readonly #batches = new WeakMap<ReadonlySet<string>, number>()
  /** Pods whose nomination may have to change, by UID. */
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Looks at pods whenever something about their plan, their node or themselves changes. */
  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    const { plans } = state
    this.#due.add(enqueue)
    plans.planned.add((uid) => {
      if (plans.get(uid)?.steering === 'told') this.#look(uid)
    })
    plans.onDropped((uids) => {
      for (const uid of uids) if (plans.written(uid) !== undefined) this.#look(uid)
    })
    caches.pods.onChange((change) => {
      this.#seePod(change)
    })
    // The Node of a claim, and which instance the claim has, become known in either order.
    caches.nodes.onChange((change) => {
      if (change.kind === 'deleted') return
      const { spec } = change.object
      if (change.kind === 'updated' && change.old.spec?.providerID === spec?.providerID) return
      const claim = state.claimOf(change.object)
      if (claim !== undefined) this.#lookAtPods(claim)
    })
    caches.nodeClaims.onChange((change) => {
      if (change.kind === 'deleted') return
      const { status } = change.object
      if (change.kind === 'updated' && change.old.status?.providerID === status?.providerID) return
      this.#lookAtPods(change.object)
    })
    resumePlans(this.#deps)
  }

  /** Most changes leave nothing to do about a pod, which is found out here for less than a reconcile takes. */
  #look(uid: string): void {
    if (this.#deps.placementGate.isOff) return
    const pod = this.#deps.state.pods.unplaced(uid)
    if (pod !== undefined && this.#isToBeWritten(uid, pod)) this.#due.notify(uid)
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { state, clock, placementGate } = this.#deps
    await placementGate.settled()
    if (!placementGate.isOn) return done
    const pod = state.pods.unplaced(uid)
    if (pod === undefined || !this.#isToBeWritten(uid, pod)) return done
    const wanted = this.#wantedNode(uid, pod)
    const turnMs = wanted === '' ? 0 : this.#untilTurnMs(uid)
    if (turnMs > 0) return { kind: 'after', delayMs: turnMs }
    const written = state.plans.written(uid)
    if (written?.node === wanted && !isOlder(written, pod)) {
      const isAccepted = written.resourceVersion !== undefined
      const pauseMs = written.atMs + repeatMs[isAccepted ? 'accepted' : 'other'] - clock.now()
      if (pauseMs > 0) return { kind: 'after', delayMs: pauseMs }
    }
    return await this.#write(pod, wanted, signal)
  }

  /** Whether the pod has another nomination than it should, and nobody else's. */
  #isToBeWritten(uid: string, pod: Pod): boolean {
    if (isTerminating(pod)) return false
    const present = nominatedNodeOf(pod)
    if (present !== '' && !this.#deps.state.nominations.isOurs(pod)) return false
    return this.#wantedNode(uid, pod) !== present
  }

  /**
   * The hardest to place come first. Turns take half of what the client's rate takes for as many: they are to
   * keep the order, not to slow anything down.
   */
  #untilTurnMs(uid: string): number {
    const { state, clock, settings } = this.#deps
    const plan = state.plans.get(uid)
    if (plan?.turn === undefined || plan.target.kind !== 'claim') return 0
    const batch = state.plans.siblingsOf(plan.target.name)
    const sinceMs = this.#batches.get(batch) ?? clock.now()
    this.#batches.set(batch, sinceMs)
    return sinceMs + (plan.turn * settings.nominationHoldMs) / settings.maxNominations / 2 - clock.now()
  }

  /** Empty when the pod should not be nominated, or cannot be yet. */
  #wantedNode(uid: string, pod: Pod): string {
    const { state } = this.#deps
    const plan = state.plans.get(uid)
    if (plan?.steering !== 'told') return ''
    if (!isAsPlanned(pod, plan)) {
      state.plans.drop(uid)
      return ''
    }
    const node = state.nominations.nodeFor(plan.target)
    if (node === undefined || node.spec?.unschedulable === true || awaitsTwins(state, pod)) return ''
    return node.metadata.name
  }

  async #write(pod: Pod, node: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, clock, state, metrics, placementGate } = this.#deps
    const { plans } = state
    const { uid = '', name, namespace = '' } = pod.metadata
    const before = plans.written(uid)
    // Noted first: the watch may tell of it before the answer comes.
    const isAccepted = before?.node === node && before.isAccepted
    if (node !== '') plans.write(uid, { node, atMs: clock.now(), isAccepted })
    let resourceVersion: string | undefined
    try {
      const answer = await client.patch(kinds.pod, { name, namespace }, changeOf(pod, node), {
        kind: 'json',
        subresource: 'status',
        fields: versionFields,
        signal,
        lane: 'urgent',
      })
      resourceVersion = answer.metadata.resourceVersion
    } catch (error) {
      if (isKubeError(error, 'conflict', 'invalid', 'notFound')) {
        plans.write(uid, before)
        // Invalid: somebody else nominated the pod in between.
        return error.kind === 'notFound' ? done : { kind: 'backoff' }
      }
      if (!isKubeError(error, 'forbidden')) throw error
      plans.write(uid, before)
      placementGate.refuse(error)
      return done
    }
    if (node === '') plans.write(uid, undefined)
    else if (state.pods.unplaced(uid) !== undefined) {
      plans.write(uid, {
        node,
        atMs: clock.now(),
        isAccepted: true,
        ...(resourceVersion !== undefined && { resourceVersion }),
      })
      if (!isAccepted) metrics.nominations.inc()
    }
    return done
  }

  #seePod(change: Change<Pod>): void {
    const { plans } = this.#deps.state
    const { object } = change
    const uid = object.metadata.uid ?? ''
    if (change.kind === 'deleted') return
    const plan = plans.get(uid)
    if (plan?.steering !== 'told' && plans.written(uid) === undefined) {
      if (plan !== undefined && isBinding(change)) plans.forget(uid)
      return
    }
    if (isBinding(change)) {
      this.#account(object, plan)
      plans.forget(uid)
      if (plan !== undefined) this.#trade(object, plan)
      if (plan !== undefined && hardSpreadOf(object).length > 0)
        for (const twin of plans.podsOf(plan.target)) this.#look(twin)
    } else this.#look(uid)
  }

  #trade(pod: Pod, { target: left }: PodPlan): void {
    const { caches, state } = this.#deps
    const name = pod.spec.nodeName ?? ''
    const node = caches.nodes.get({ name })
    if (node === undefined || state.nominations.nodeFor(left)?.metadata.name === name) return
    const claim = state.claimOf(node)?.metadata.name
    const taken: PlanTarget = claim === undefined ? { kind: 'node', name } : { kind: 'claim', name: claim }
    tradePlaces(state, pod, { taken, left })
  }

  /** Counts how a pod's plan ended. */
  #account(pod: Pod, plan: PodPlan | undefined): void {
    const { state, metrics, logger, placementGate } = this.#deps
    const written = state.plans.written(pod.metadata.uid ?? '')
    if (!placementGate.isOn || (plan === undefined && written === undefined)) return
    const node = pod.spec.nodeName ?? ''
    const isHonoured = written?.node === node
    const outcome = isHonoured ? 'honoured' : written?.isAccepted === true ? 'missed' : 'too_late'
    metrics.nominationOutcomes.inc({ outcome })
    const planned = plan === undefined ? written?.node : state.nominations.nodeFor(plan.target)?.metadata.name
    if (isHonoured || planned === node) return
    logger.info('pod bound elsewhere than planned', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      Node: { name: node },
      planned: planned ?? plan?.target.name ?? '',
      outcome,
    })
  }

  #lookAtPods({ metadata: { name } }: NodeClaim): void {
    for (const uid of this.#deps.state.plans.podsOf({ kind: 'claim', name })) this.#look(uid)
  }
}

/** Whether the pod of this change has just been given its node. */
function isBinding(change: Change<Pod>): boolean {
  if (change.kind !== 'updated') return false
  return (change.old.spec.nodeName ?? '') === '' && (change.object.spec.nodeName ?? '') !== ''
}

/**
 * Changes the nomination alone, and only as long as it is the one that was seen: others may nominate the pod,
 * and its name may pass on to another pod. Whatever else changes meanwhile does not matter.
 */
function changeOf(pod: Pod, node: string): readonly object[] {
  const path = '/status/nominatedNodeName'
  const present = nominatedNodeOf(pod)
  return [
    { op: 'test', path: '/metadata/uid', value: pod.metadata.uid },
    { op: 'test', path, value: present === '' ? null : present },
    node === '' ? { op: 'remove', path } : { op: 'add', path, value: node },
  ]
}

/** Whether the pod was changed after the nomination was written, as far as versions can tell. */
function isOlder({ resourceVersion: written }: WrittenNomination, { metadata }: Pod): boolean {
  if (written === undefined || metadata.resourceVersion === undefined) return false
  return (compareResourceVersions(written, metadata.resourceVersion) ?? 0) < 0
}

/** Whether the pod asks for what it asked for when its plan was made. */
function isAsPlanned(pod: Pod, { spec }: PodPlan): boolean {
  return spec === undefined || isSameValue(spec, pod.spec)
}
