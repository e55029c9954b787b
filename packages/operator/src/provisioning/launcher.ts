/** Creates the NodeClaims of one decision. */
import { consumedBy, counted, type NodeClaim, type NodePool, type Pod, sumOfPrices } from '@tenon/api'
import type { NewClaim, SchedulingResult } from '@tenon/engine'
import { type EventRecorder, isKubeError } from '@tenon/kube'
import { type Logger, traced, type Tracer } from '@tenon/runtime'
import { podsNoted } from '../journal/entry.ts'
import type { Journal } from '../journal/journal.ts'
import { launchedFor, nodeClaimFor } from '../nodeclaim/claim-objects.ts'
import type { ClaimCreations } from '../nodeclaim/claim-creation.ts'
import { traceOf } from '../nodeclaim/claim-traces.ts'
import type { CloudProvider } from '@tenon/provider'
import { type CapacityLearning, settingsNote } from '../cloud/provider-layers.ts'
import { policyOf, type Settings } from '../settings.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { bufferOf, isBufferPod } from '../state/pods/buffer-pods.ts'
import { groupNote } from '../state/pods/group-of-pod.ts'
import { keyOf } from '../state/pods/pods.ts'
import { largestNoted } from '../state/quotas.ts'
import { podList, shortened } from '../text.ts'
import {
  type OvertakenClaim,
  poolWithinLimits,
  reserveLimits,
  type ReservedClaim,
  waitForLimits,
} from './claim-reservations.ts'
import type { DecisionPlan } from './decision-plan.ts'
import { overtakenText } from './overtaken.ts'
import type { PlannedClaims } from './planned-claims.ts'
import type { RefusedClaims } from './refused-claims.ts'
import type { SchedulingReport } from './scheduling-report.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools' | 'pods'>
  readonly state: Pick<
    ClusterState,
    | 'brake'
    | 'buffers'
    | 'isWellFormed'
    | 'limitReservations'
    | 'movedPods'
    | 'parsed'
    | 'podGroups'
    | 'quotas'
    | 'recentlyFilledNodes'
    | 'stateNodes'
  >
  readonly plannedClaims: PlannedClaims
  readonly provider: Pick<CloudProvider, 'defaultTerminationGracePeriodMs'>
  readonly learning?: CapacityLearning
  readonly refused: RefusedClaims
  readonly creations: ClaimCreations
  readonly report: SchedulingReport
  readonly events: EventRecorder
  readonly journal: Pick<Journal, 'decided'>
  readonly settings: Pick<Settings, 'compatibility'>
  readonly logger: Logger
  readonly tracer: Tracer | undefined
}

/** What the claims of one decision are created with. */
interface Launch {
  readonly plan: DecisionPlan
  /** Id of the decision in the journal. */
  readonly decision: string
}

const parallelCreates = 20
/** Of the pods of one claim, in spans. */
const mostPodsTraced = 100

/** Whether the decision was carried out, or the cluster changed after it. */
export type LaunchOutcome = 'done' | 'overtaken'

export class Launcher {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @returns `overtaken` if some may not be created any more: a new decision is due.
   * @throws AggregateError of the creations that failed, after all were tried.
   */
  async create(
    { claims, deferred }: Pick<SchedulingResult, 'claims' | 'deferred'>,
    { plan, placement }: { readonly plan: DecisionPlan; readonly placement: 'planned' | 'free' },
    signal: AbortSignal,
  ): Promise<LaunchOutcome> {
    const { logger, refused } = this.#deps
    const launch = { plan, decision: claims.length > 0 ? this.#note(claims) : '' }
    if (claims.length > 0)
      logger.info('computed new nodeclaim(s) to fit pod(s)', {
        nodeclaims: claims.length,
        pods: claims.reduce((count, claim) => count + claim.pods.length, 0),
        // Without steering the plan has to hold wherever pods land, which may cost more.
        placement,
      })
    const { reserved, overtaken } = reserveLimits(this.#deps, claims)
    const late: OvertakenClaim[] = [...overtaken, ...waitForLimits(this.#deps, deferred)]
    const failures: unknown[] = []
    const queue = [...reserved]
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        try {
          const by = await this.#createOne(next, launch, signal)
          if (by !== undefined) late.push(by)
        } catch (error) {
          if (isKubeError(error, 'invalid', 'forbidden')) refused.note(next.claim, error.message)
          else failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelCreates, claims.length) }, worker))
    for (const { claim, by } of late)
      logger.info('did not create a nodeclaim; its pods are scheduled again', {
        NodePool: { name: claim.nodePool },
        because: overtakenText(by),
        Pods: podList(claim.pods),
      })
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `creating ${counted(failures.length, 'NodeClaim')}: ${(failures[0] as Error).message}`,
      )
    return late.length === 0 ? 'done' : 'overtaken'
  }

  async #createOne(
    reserved: ReservedClaim,
    { plan, decision }: Launch,
    signal: AbortSignal,
  ): Promise<OvertakenClaim | undefined> {
    const { plannedClaims, provider, refused, tracer } = this.#deps
    const { claim, reservation } = reserved
    const within = poolWithinLimits(this.#deps, reserved)
    if (within.kind !== 'within') return { claim, by: within }
    const { pool } = within
    const object = plan.noted(
      nodeClaimFor(claim, provider.defaultTerminationGracePeriodMs, {
        ...this.#annotations(claim, pool),
        ...largestNoted(reservation),
      }),
      claim,
    )
    const created = await traced(tracer, 'create NodeClaim', {}, async (span) => {
      span?.set({
        'tenon.nodepool': claim.nodePool,
        'tenon.pods': claim.pods.slice(0, mostPodsTraced).map(({ metadata }) => keyOf(metadata)),
      })
      const stored = await plannedClaims.create(pool, object, reservation, signal)
      span?.set({ 'tenon.nodeclaim': stored.metadata.name })
      span?.link(traceOf(stored))
      return stored
    })
    plan.launched(created, claim)
    refused.forget([...claim.pods, ...(claim.roomPods ?? [])])
    this.#created(claim, created, pool, decision)
    return undefined
  }

  /** Annotations that tell a later process what the claim was created for. */
  #annotations({ pods, podGroups = [] }: NewClaim, pool: NodePool): Readonly<Record<string, string>> {
    const { learning, settings, state } = this.#deps
    if (!policyOf(settings).learns) return {}
    const groups = podGroups.flatMap((id) => {
      const ref = state.podGroups.ref(id)
      const group = ref && state.podGroups.get(ref)
      return group === undefined ? [] : [{ id, uid: group.uid }]
    })
    return {
      ...settingsNote(learning, pool),
      ...launchedFor(pods.map((pod) => this.#stored(pod))),
      ...groupNote(groups),
    }
  }

  /** The pod as it is stored, without what decisions changed of it. */
  #stored(pod: Pod): Pod {
    const { caches, state } = this.#deps
    const { name, namespace, uid } = pod.metadata
    const stored = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
    return stored?.metadata.uid === uid && stored !== undefined && state.isWellFormed(stored) ? stored : pod
  }

  /** Writes the decision into the journal, before any claim is created. @returns its id. */
  #note(claims: readonly NewClaim[]): string {
    const pods = claims.flatMap((claim) => claim.pods)
    const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => claim.pricePerHour))
    return this.#deps.journal.decided({
      kind: 'decision',
      reason: 'Provisioned',
      message: `${counted(claims.length, 'NodeClaim')} created for ${counted(pods.length, 'pod')}${roomText(claims)}`,
      pods: podsNoted(pods),
      pricePerHour: { before: 0, ...(unpriced === 0 && { after: pricePerHour }) },
    })
  }

  /** @param pool as the decision saw it. */
  #created(claim: NewClaim, created: NodeClaim, pool: NodePool, decision: string): void {
    const { creations, logger, report, state } = this.#deps
    const { name } = created.metadata
    if (claim.pricePerHour === undefined) this.#warnOfUnknownPrice(created, claim)
    const roomPods = Map.groupBy(claim.roomPods ?? [], isBufferPod)
    const [buffered, requested] = [roomPods.get(true), roomPods.get(false)]
    if (buffered !== undefined) state.buffers.launched(name)
    state.recentlyFilledNodes.fill(name)
    const workloads = state.movedPods.launchFor(claim.pods)
    if (workloads > 0)
      logger.info(
        'consolidation moved pods that needed a new node; their workloads are not consolidated for a while',
        { NodeClaim: { name }, workloads, Pods: podList(claim.pods) },
      )
    creations.note({
      name,
      nodePool: claim.nodePool,
      reason: 'provisioned',
      decision,
      pods: claim.pods,
      pricePerHour: claim.pricePerHour,
      minValuesRelaxed: claim.minValuesRelaxed,
      details: {
        requests: created.spec.resources?.requests,
        'instance-types': shortened(claim.instanceTypes),
        Pods: podList(claim.pods),
        ...(buffered && { 'capacity-buffers': countsText(buffered, bufferOf) }),
        ...(requested && {
          'provisioning-requests': countsText(requested, (pod) => consumedBy(pod) ?? ''),
        }),
      },
    })
    for (const pod of claim.pods) {
      report.placed(pod, pool, name)
      report.nominated(pod, created, undefined)
    }
  }

  #warnOfUnknownPrice(claim: NodeClaim, { nodePool, instanceTypes }: NewClaim): void {
    const what = `No price is known for any instance type that fits the pods of this NodeClaim (${shortened(instanceTypes)})`
    const consequence = 'its cost is not included in totals, and it is not replaced to save money'
    this.#deps.logger.warn('launched without a known price', {
      NodePool: { name: nodePool },
      NodeClaim: { name: claim.metadata.name },
      'instance-types': shortened(instanceTypes),
    })
    this.#deps.events.record({
      object: claim,
      type: 'Warning',
      reason: 'PriceUnknown',
      message: `${what}; ${consequence}. A NodeOverlay with spec.price gives it one`,
      dedupe: [claim.metadata.uid ?? claim.metadata.name],
    })
  }
}

function roomText(claims: readonly NewClaim[]): string {
  const count = claims.reduce((sum, { roomPods = [] }) => sum + roomPods.length, 0)
  return count === 0
    ? ''
    : ` and the room of ${count} more that CapacityBuffers and ProvisioningRequests keep`
}

/** Number of placeholder pods of each buffer or request. */
function countsText(pods: readonly Pod[], ownerOf: (pod: Pod) => string): string {
  return Array.from(Map.groupBy(pods, ownerOf), ([owner, own]) => `${owner}: ${own.length}`).join(', ')
}
