/** `pod.nomination`: asks the Kubernetes scheduler to follow the plan (planned-placement.md). */
import type { NodeClaim, Pod } from '@tenon/api'
import { hardSpreadOf } from '@tenon/engine'
import { type Change, done, type ReconcileResult } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import { isSameValue } from '../state/same-value.ts'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import type { PlanTarget, PodPlan } from '../state/pods/pod-plans.ts'
import { isTerminating } from '../state/pods/pods.ts'
import type { NominationOutcomes } from './nomination-outcomes.ts'
import type { NominationWriter } from './nomination-writer.ts'
import { tradePlaces } from './place-trade.ts'
import { awaitsTwins } from './spread-turn.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PlacementGate } from './gate.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'claimOf' | 'nominations' | 'plans' | 'pods'>
  readonly placementGate: Pick<PlacementGate, 'isOff' | 'isOn' | 'settled'>
  readonly writer: NominationWriter
  readonly outcomes: NominationOutcomes
  /** Takes up the plans of the process before this one. */
  readonly resumePlans: () => void
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
    this.#deps.resumePlans()
  }

  /** Most changes leave nothing to do about a pod, which is found out here for less than a reconcile takes. */
  #look(uid: string): void {
    if (this.#deps.placementGate.isOff) return
    const pod = this.#deps.state.pods.unplaced(uid)
    if (pod !== undefined && this.#isToBeWritten(uid, pod)) this.#due.notify(uid)
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { state, placementGate, writer } = this.#deps
    await placementGate.settled()
    if (!placementGate.isOn) return done
    const pod = state.pods.unplaced(uid)
    if (pod === undefined || !this.#isToBeWritten(uid, pod)) return done
    const wanted = this.#wantedNode(uid, pod)
    const waitMs = writer.waitMs(pod, wanted)
    if (waitMs > 0) return { kind: 'after', delayMs: waitMs }
    return await writer.write(pod, wanted, signal)
  }

  /** Whether the pod has another nomination than it should, and nobody else's. */
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
      this.#deps.outcomes.count(object, plan)
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
}

/** Whether the pod of this change has just been given its node. */
function isBinding(change: Change<Pod>): boolean {
  if (change.kind !== 'updated') return false
  return (change.old.spec.nodeName ?? '') === '' && (change.object.spec.nodeName ?? '') !== ''
}

/** Whether the pod asks for what it asked for when its plan was made. */
function isAsPlanned(pod: Pod, { spec }: PodPlan): boolean {
  return spec === undefined || isSameValue(spec, pod.spec)
}
