/** Writes nominations of pods, in their turn and not too often. */
import { compareResourceVersions, kinds, type Pod } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReadFields, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import type { WrittenNomination } from '../state/pods/pod-plans.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PlacementGate } from './gate.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly state: Pick<ClusterState, 'plans' | 'pods'>
  readonly placementGate: Pick<PlacementGate, 'refuse'>
  readonly metrics: Pick<Metrics, 'nominations'>
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'nominationHoldMs' | 'maxNominations'>
}

/** Nominations that do not show in the cache are set again after this long: accepted ones, and all others. */
const repeatMs = { accepted: 5000, other: 200 } as const

/** What is read of a pod that was nominated. */
const versionFields: ReadFields = {
  members: { metadata: { members: { resourceVersion: true }, others: false } },
  others: false,
}

export class NominationWriter {
  readonly #deps: Dependencies
  /** When the first pod of a decision had a Node to go to, by the claims of the decision; Unix milliseconds. */
  readonly #batches = new WeakMap<ReadonlySet<string>, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Milliseconds until it is time to write; 0 or less when it is.
   * @param node that the pod is to be nominated for; empty when for none.
   */
  waitMs(pod: Pod, node: string): number {
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

  /** @param node as for {@link waitMs}. */
  async write(pod: Pod, node: string, signal: AbortSignal): Promise<ReconcileResult> {
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
