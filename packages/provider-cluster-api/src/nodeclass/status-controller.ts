/** Updates the status of ClusterAPINodeClasses (cluster-api.md 13). */
import { ConditionSet, type NewCondition, type PriceList } from '@tenon/api'
import { type Cache, done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { unlessOvertaken } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import type { Catalogue, Readings } from '../catalogue/catalogue.ts'
import type { Participant } from '../catalogue/participant.ts'
import type { ClusterApiNames } from '../names.ts'
import { foundText, matchedDeployments } from './matched.ts'
import {
  type ClusterAPINodeClass,
  clusterAPINodeClassKind,
  conditionTypes,
  type MatchedDeployment,
} from '../node-class.ts'
import { findingsOf } from './validation.ts'

/** How often templates are read again, as they are not watched. */
const againMs = 5 * 60_000
/** Maximum problems in one message. */
const maxReported = 5

export interface NodeClassStatusDependencies {
  /** The workload cluster. */
  readonly kube: Pick<KubeClient, 'patch'>
  readonly nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'get'>
  /** The MachineDeployments in the status. */
  readonly deployments: {
    readonly catalogue: Pick<Catalogue, 'readingsOf'>
    readonly prices: PriceList
    readonly names: Pick<ClusterApiNames, 'member'>
  }
  readonly events: EventRecorder
  readonly clock: Clock
}

type Status = NonNullable<ClusterAPINodeClass['status']>

/** Reconciles one ClusterAPINodeClass by name. */
export class NodeClassStatus {
  readonly #deps: NodeClassStatusDependencies

  constructor(deps: NodeClassStatusDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const nodeClass = this.#deps.nodeClasses.get({ name })
    if (nodeClass === undefined || nodeClass.metadata.deletionTimestamp !== undefined) return done
    return await unlessOvertaken(async () => {
      await this.#refresh(nodeClass, signal)
      return { kind: 'after', delayMs: againMs }
    })
  }

  async #refresh(nodeClass: ClusterAPINodeClass, signal: AbortSignal): Promise<void> {
    const { deployments, events, clock } = this.#deps
    const { catalogue, names, prices } = deployments
    const readings = await catalogue.readingsOf(nodeClass)
    const updates = conditionsOf(nodeClass, readings, names.member)
    for (const { status, reason = '', message = '' } of updates)
      if (status === 'False')
        events.record({ object: nodeClass, type: 'Warning', reason, message, dedupe: [message] })
    const { conditions } = updates.reduce(
      (set, update) => set.set(update, clock.now()),
      ConditionSet.of(nodeClass, { dependents: [conditionTypes.validated, conditionTypes.read] }),
    )
    const before = nodeClass.status ?? {}
    const machineDeployments = listOf(before, readings, prices)
    const isSame =
      JSON.stringify([before.conditions ?? [], before.machineDeployments ?? []]) ===
      JSON.stringify([conditions, machineDeployments])
    if (!isSame) await this.#write(nodeClass, { conditions, machineDeployments }, signal)
  }

  async #write({ metadata }: ClusterAPINodeClass, status: Status, signal: AbortSignal): Promise<void> {
    const { name, resourceVersion } = metadata
    await this.#deps.kube.patch(
      clusterAPINodeClassKind,
      { name },
      { status },
      { signal, subresource: 'status', ...(resourceVersion !== undefined && { resourceVersion }) },
    )
  }
}

/** Ignores our own status writes. */
export function isNews({ metadata }: ClusterAPINodeClass, { metadata: old }: ClusterAPINodeClass): boolean {
  return metadata.generation !== old.generation || metadata.deletionTimestamp !== old.deletionTimestamp
}

/** The old list is kept until the hub has been read. */
function listOf(before: Status, readings: Readings, prices: PriceList): readonly MatchedDeployment[] {
  if (readings.kind === 'waiting') return before.machineDeployments ?? []
  return readings.kind === 'read' ? matchedDeployments(readings.readings, prices) : []
}

function conditionsOf(
  nodeClass: ClusterAPINodeClass,
  readings: Readings,
  member: string,
): readonly NewCondition[] {
  const { validated, read, found } = conditionTypes
  const errors = findingsOf(nodeClass)
  if (errors.length > 0) {
    const texts = errors
      .slice(0, maxReported)
      .map(({ field, message, fix }) => `${field}: ${message}; ${fix}`)
    const message = texts.join('. ')
    return [
      { type: validated, status: 'False', reason: 'ValidationFailed', message },
      {
        type: found,
        status: 'Unknown',
        reason: 'ValidationFailed',
        message: 'the selector is invalid',
      },
    ]
  }
  const valid: NewCondition = { type: validated, status: 'True' }
  if (readings.kind === 'waiting') {
    // A node class that was ready stays ready: launches wait for the hub themselves, and nothing else needs
    // it.
    const isKnown = nodeClass.status?.conditions?.some(
      ({ type, status }) => type === read && status === 'True',
    )
    const { because } = readings
    return isKnown === true
      ? [valid, { type: read, status: 'True' }]
      : [valid, { type: read, status: 'Unknown', reason: 'ManagementClusterNotRead', message: because }]
  }
  if (readings.kind === 'refused')
    return [
      valid,
      { type: read, status: 'False', reason: 'MachineDeploymentsRefused', message: readings.because },
      {
        type: found,
        status: 'Unknown',
        reason: 'MachineDeploymentsRefused',
        message: 'see MachineDeploymentsRead',
      },
    ]
  const kept = readings.readings.flatMap((each) =>
    each.kind === 'participant' && each.participant.isKept ? [each.participant] : [],
  )
  const used = readings.readings.filter(({ kind }) => kind === 'participant')
  // Somebody else manages the number of nodes: none can be launched until that changes.
  const reading: NewCondition =
    kept.length > 0 && kept.length === used.length
      ? { type: read, status: 'False', reason: 'ReplicasOwned', message: participantList(kept) }
      : { type: read, status: 'True' }
  return [valid, reading, foundCondition(readings, member)]
}

function participantList(participants: readonly Participant[]): string {
  const reasons = participants.flatMap(({ unavailability }) => unavailability?.because ?? [])
  const rest = reasons.length > maxReported ? `; and ${reasons.length - maxReported} more` : ''
  return `${reasons.slice(0, maxReported).join('; ')}${rest}`
}

function foundCondition(
  { readings }: Extract<Readings, { readonly kind: 'read' }>,
  member: string,
): NewCondition {
  const { found: type } = conditionTypes
  const message = foundText(readings)
  const used = readings.flatMap((each) => (each.kind === 'participant' ? [each.participant] : []))
  if (used.length > 0) {
    const canGrow = used.some(({ unavailability }) => unavailability === undefined)
    return {
      type,
      status: 'True',
      message: canGrow ? message : `${message}; none can grow now: ${participantList(used)}`,
    }
  }
  if (readings.length > 0)
    return {
      type,
      status: 'False',
      reason: 'NoneUsable',
      message: `${message}; see status.machineDeployments`,
    }
  return {
    type,
    status: 'False',
    reason: 'NoneMatched',
    message: `no MachineDeployment matches: they need label ${member} with an empty value, and whatever spec.scalableResourceSelector asks for`,
  }
}
