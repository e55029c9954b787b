import { kinds, type PersistentVolume, type Pod, type PodCondition } from '@tenon/api'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { ApiError, type LocalApi } from '../../contract.ts'
import type { EventRecorder } from './event-recorder.ts'
import { type PodFacts, selectedNodePatch } from '@tenon/filters'

/** The result of a binding. */
export type BindResult = 'bound' | 'gone' | 'refused'

/** Why a pod has no node. */
export interface Failure {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
  /** Where pods are preempted for the pod. */
  readonly nodeName: string | undefined
  /** Whether the same was reported before. */
  readonly isRepeated?: boolean
}

/** Everything the scheduler writes. Refused writes are results, never exceptions. */
export class OutcomeWriter {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #events: EventRecorder
  readonly #schedulerName: string

  constructor(
    capabilities: { readonly api: LocalApi; readonly clock: Clock; readonly logger: Logger },
    events: EventRecorder,
    schedulerName: string,
  ) {
    this.#api = capabilities.api
    this.#clock = capabilities.clock
    this.#logger = capabilities.logger
    this.#events = events
    this.#schedulerName = schedulerName
  }

  /**
   * Reserves an existing volume for a claim.
   * @returns the volume, or undefined if the write was refused.
   */
  reserveVolume(
    volume: PersistentVolume,
    namespace: string,
    claimName: string,
  ): PersistentVolume | undefined {
    let reserved: PersistentVolume | undefined
    this.#attempt('volume could not be reserved', () => {
      const claim = this.#api.get(kinds.persistentVolumeClaim, namespace, claimName)
      const claimRef = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace,
        name: claimName,
        ...(claim?.metadata.uid !== undefined && { uid: claim.metadata.uid }),
      }
      const metadata = { annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' } }
      const patch = { metadata, spec: { claimRef } }
      reserved = this.#api.patch(kinds.persistentVolume, undefined, volume.metadata.name, patch)
    })
    return reserved
  }

  /**
   * Binds a pod; first sets the selected node on `waitingClaims`, so that their volumes are provisioned there.
   */
  bind(facts: PodFacts, nodeName: string, waitingClaims: readonly string[]): BindResult {
    const { namespace, name } = facts
    const nodeChosen = waitingClaims.every((claim) =>
      this.#attempt('claim could not be told its node', () => {
        this.#api.patch(kinds.persistentVolumeClaim, namespace, claim, selectedNodePatch(nodeName))
      }),
    )
    if (!nodeChosen) return 'refused'
    try {
      this.#api.bind(namespace, name, nodeName)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#logger.debug('binding was refused', { namespace, name, nodeName, error })
      return error.code === 404 || error.code === 409 ? 'gone' : 'refused'
    }
    const nominated = facts.pod.status?.nominatedNodeName ?? ''
    if (nominated !== '') this.#clearBoundNomination(facts)
    const message = `Successfully assigned ${namespace}/${name} to ${nodeName}`
    this.#events.record(facts.pod, { type: 'Normal', reason: 'Scheduled', message })
    return 'bound'
  }

  /** Writes why the pod is pending. Only writes what differs. */
  fail(facts: PodFacts, { reason, message, nodeName, isRepeated = false }: Failure): void {
    const event = { type: 'Warning', reason: 'FailedScheduling', message } as const
    if (!isRepeated) this.#events.record(facts.pod, event)
    this.#setCondition(facts, reason, message, nodeName)
  }

  gated(facts: PodFacts): void {
    const message = 'Scheduling is blocked due to non-empty scheduling gates'
    this.#setCondition(facts, 'SchedulingGated', message, facts.pod.status?.nominatedNodeName)
  }

  clearNomination(facts: PodFacts): void {
    const current = this.#current(facts)
    if ((current?.status?.nominatedNodeName ?? '') === '') return
    this.#patchStatus(facts, { nominatedNodeName: null })
  }

  /** Deletes a pod for another one, with its usual grace period. */
  preempt(victim: PodFacts, by: PodFacts, nodeName: string): void {
    const current = this.#current(victim)
    if (current === undefined || current.metadata.deletionTimestamp !== undefined) return
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: `${this.#schedulerName}: preempting to accommodate a higher priority pod`,
    }
    this.#patchStatus(victim, { conditions: withCondition(current, condition, this.#now()) })
    this.#attempt('victim could not be deleted', () => {
      this.#api.delete(kinds.pod, victim.namespace, victim.name, { preconditionUid: victim.uid })
    })
    const message = `Preempted by pod ${by.uid} on node ${nodeName}`
    this.#events.record(victim.pod, { type: 'Normal', reason: 'Preempted', message })
  }

  #clearBoundNomination(facts: PodFacts): void {
    const current = this.#current(facts)
    if ((current?.status?.nominatedNodeName ?? '') !== '') {
      this.#patchStatus(facts, { nominatedNodeName: null })
    }
  }

  #setCondition(facts: PodFacts, reason: string, message: string, nominated: string | undefined): void {
    const current = this.#current(facts)
    if (current === undefined) return
    const known = current.status?.conditions?.find((one) => one.type === 'PodScheduled')
    const same = known?.status === 'False' && known.reason === reason && known.message === message
    const sameNomination = (current.status?.nominatedNodeName ?? '') === (nominated ?? '')
    if (same && sameNomination) return
    const condition = { type: 'PodScheduled', status: 'False', reason, message }
    this.#patchStatus(facts, {
      ...(same ? {} : { conditions: withCondition(current, condition, this.#now()) }),
      ...(sameNomination ? {} : { nominatedNodeName: nominated ?? null }),
    })
  }

  #patchStatus(facts: PodFacts, status: object): void {
    this.#attempt('pod status could not be written', () => {
      this.#api.patch(kinds.pod, facts.namespace, facts.name, { status }, 'status')
    })
  }

  #current(facts: PodFacts): Pod | undefined {
    const pod = this.#api.get(kinds.pod, facts.namespace, facts.name)
    return pod === undefined || (pod.metadata.uid ?? facts.uid) !== facts.uid ? undefined : pod
  }

  #now(): string {
    return rfc3339(this.#clock.now())
  }

  #attempt(failure: string, write: () => void): boolean {
    try {
      write()
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#logger.debug(failure, { error })
      return false
    }
  }
}

/** The pod's conditions with one replaced; its transition time only changes with the status. */
function withCondition(pod: Pod, condition: PodCondition, now: string): PodCondition[] {
  const conditions = pod.status?.conditions ?? []
  const known = conditions.find((one) => one.type === condition.type)
  const unchanged = known?.status === condition.status && known.lastTransitionTime !== undefined
  const next = { ...condition, lastTransitionTime: unchanged ? known.lastTransitionTime : now }
  return known === undefined ? [...conditions, next] : conditions.map((one) => (one === known ? next : one))
}
