/** `pod.nomination`: asks the Kubernetes scheduler to follow the plan (planned-placement.md). */
import { compareResourceVersions, kinds, type NodeClaim, type Pod } from '@tenon/api'
import { hardSpreadOf, interchangeKey } from '@tenon/engine'
import {
  type Change,
  done,
  isKubeError,
  type KubeClient,
  type ReadFields,
  type ReconcileResult,
} from '@tenon/kube'
import { type Clock, Listeners, type Logger } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import { isSameValue } from '../state/same-value.ts'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import type { PlanTarget, PodPlan, WrittenNomination } from '../state/pods/pod-plans.ts'
import { isTerminating } from '../state/pods/pods.ts'
import { resumePlans } from './planned-pods.ts'
import { awaitsTwins } from './standing-nominations.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PlacementGate } from './gate.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Settings } from '../settings.ts'

/** Nominations that do not show in the cache are set again after this long: accepted ones, and all others. */
const repeatMs = { accepted: 5000, other: 200 } as const

/** What is read of a pod that was nominated. */
const versionFields: ReadFields = {
  members: { metadata: { members: { resourceVersion: true }, others: false } },
  others: false,
}

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'claimOf' | 'isManaged' | 'nominations' | 'plans' | 'podGroups' | 'pods'>
  readonly placementGate: PlacementGate
  readonly metrics: Pick<Metrics, 'nominationOutcomes' | 'nominations'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
  readonly settings: Pick<Settings, 'nominationHoldMs' | 'maxNominations'>
}

/**
 * Writes `status.nominatedNodeName` of pods as their plans say, until they are bound. Keys are pod UIDs. Nominations by
 * others are left alone.
 */
export class Nominator implements ControllerSpec {
  readonly name = 'pod.nomination'
  /** What the client's default rate allows at 100 ms a response; each needs a connection of its own. */
  readonly concurrency = { least: 20, most: 500 }
  readonly backoff = { baseMs: 100, capMs: 10_000 }
  readonly #deps: Dependencies
  /** Pods whose nomination may have to change, by UID. */
  readonly #due = new Listeners<string>()
  /** When the first pod of a decision had a Node, by the claims of the decision; Unix milliseconds. */
  readonly #batches = new WeakMap<ReadonlySet<string>, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Checks a pod when the pod, its plan or its node changes. */
  watch(enqueue: Enqueue): void {
    const { caches, clock, placementGate, state } = this.#deps
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
    // The Node and the claim's provider ID may arrive in either order.
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
    if (placementGate.keepsPlans) resumePlans(caches.nodeClaims, state, clock)
  }

  /** Enqueues the pod if there is something to write: mostly there is not, and a reconcile costs more. */
  #look(uid: string): void {
    if (this.#deps.placementGate.isOff) return
    const pod = this.#deps.state.pods.unplaced(uid)
    if (pod !== undefined && this.#isToBeWritten(uid, pod)) this.#due.notify(uid)
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { state, placementGate } = this.#deps
    await placementGate.settled()
    if (!placementGate.isOn) return done
    const pod = state.pods.unplaced(uid)
    if (pod === undefined || !this.#isToBeWritten(uid, pod)) return done
    const wanted = this.#wantedNode(uid, pod)
    const waitMs = this.#waitMs(pod, wanted)
    if (waitMs > 0) return { kind: 'after', delayMs: waitMs }
    return await this.#write(pod, wanted, signal)
  }

  /** Whether the nomination of the pod is not as it should be, and not somebody else's. */
  #isToBeWritten(uid: string, pod: Pod): boolean {
    if (isTerminating(pod)) return false
    const present = nominatedNodeOf(pod)
    if (present !== '' && !this.#deps.state.nominations.isOurs(pod)) return false
    return this.#wantedNode(uid, pod) !== present
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
      this.#countOutcome(object, plan)
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

  #lookAtPods({ metadata: { name } }: NodeClaim): void {
    for (const uid of this.#deps.state.plans.podsOf({ kind: 'claim', name })) this.#look(uid)
  }

  /**
   * Milliseconds until it is time to write, 0 or less for now.
   * @param node to nominate the pod for; empty to remove the nomination.
   */
  #waitMs(pod: Pod, node: string): number {
    const { clock, state } = this.#deps
    const { uid = '' } = pod.metadata
    const turnMs = node === '' ? 0 : this.#untilTurnMs(uid)
    if (turnMs > 0) return turnMs
    const written = state.plans.written(uid)
    if (written?.node !== node || isOlder(written, pod)) return 0
    const isAccepted = written.resourceVersion !== undefined
    return written.atMs + repeatMs[isAccepted ? 'accepted' : 'other'] - clock.now()
  }

  /**
   * The hardest to place come first. Turns are twice as fast as the client's rate limit: they keep the order without
   * slowing anything down.
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

  async #write(pod: Pod, node: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, clock, state, metrics, placementGate } = this.#deps
    const { plans } = state
    const { uid = '', name, namespace = '' } = pod.metadata
    const before = plans.written(uid)
    // Noted first: the watch may be faster than the response.
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
        // Invalid: somebody else has nominated the pod meanwhile.
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

  /** Counts whether the scheduler bound the pod where it was nominated. */
  #countOutcome(pod: Pod, plan: PodPlan | undefined): void {
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
}

/** Whether the change binds the pod. */
function isBinding(change: Change<Pod>): boolean {
  if (change.kind !== 'updated') return false
  return (change.old.spec.nodeName ?? '') === '' && (change.object.spec.nodeName ?? '') !== ''
}

/** Whether the spec of the pod is the one it was planned with. */
function isAsPlanned(pod: Pod, { spec }: PodPlan): boolean {
  return spec === undefined || isSameValue(spec, pod.spec)
}

/**
 * Changes only the nomination, and only if it is still the one that was seen: others may nominate the pod, and its name
 * may belong to another pod by now. Other concurrent changes do not matter.
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

/** Whether the pod has changed since the nomination was written; false if versions cannot be compared. */
function isOlder({ resourceVersion: written }: WrittenNomination, { metadata }: Pod): boolean {
  if (written === undefined || metadata.resourceVersion === undefined) return false
  return (compareResourceVersions(written, metadata.resourceVersion) ?? 0) < 0
}

interface Plans {
  readonly plans: Pick<ClusterState['plans'], 'get' | 'set' | 'podsOf'>
  readonly pods: Pick<ClusterState['pods'], 'unplaced'>
  readonly nominations: Pick<ClusterState['nominations'], 'nodeFor'>
}

/**
 * When a pod is bound elsewhere than planned, swaps its plan with that of an identical pod that waits for the node it
 * took, so that both nodes hold as many pods as planned.
 * @param taken what the pod is bound to.
 * @param left what it was planned for.
 */
export function tradePlaces(
  { plans, pods, nominations }: Plans,
  pod: Pod,
  { taken, left }: { readonly taken: PlanTarget; readonly left: PlanTarget },
): void {
  if (nominations.nodeFor(left) === undefined) return
  const likeness = interchangeKey(pod)
  const twins = plans.podsOf(taken).flatMap((uid) => {
    const twin = plans.get(uid)?.steering === 'told' ? pods.unplaced(uid) : undefined
    return twin !== undefined && interchangeKey(twin) === likeness ? [twin] : []
  })
  // A pod without its nomination was just tried and rejected: probably its room was taken.
  const twin = twins.find((each) => nominatedNodeOf(each) === '') ?? twins.at(-1)
  const uid = twin?.metadata.uid ?? ''
  const plan = plans.get(uid)
  if (plan !== undefined) plans.set(uid, { ...plan, target: left })
}
