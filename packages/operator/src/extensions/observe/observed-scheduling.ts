/** Decides which nodes of observed NodePools would be launched, and launches none. */
import { counted, type Pod, sumOfPrices } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { type Logger, traced, type Tracer } from '@tenon/runtime'
import { keyOf } from '../../state/pods/pods.ts'
import { plannedInstance } from '../../disruption/commands/command-journal.ts'
import { podsNoted } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import { podList, shortened } from '../../text.ts'
import type { LaunchOutcome } from '../../provisioning/launcher.ts'
import type { SchedulingInputs } from '../../provisioning/input/scheduling-input.ts'
import type { DecisionMemory } from '../../provisioning/decision-memory.ts'
import type { PassDecider } from '../../decide/decider.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'
import type { SeenPods } from './seen-pods.ts'

interface Dependencies {
  readonly observed: Pick<ObservedPools, 'isAny'>
  /** Of the observed NodePools. */
  readonly inputs: SchedulingInputs
  readonly decider: Pick<PassDecider, 'decide'>
  readonly memory: Pick<DecisionMemory, 'failed'>
  readonly journal: Pick<Journal, 'decided' | 'note'>
  readonly logger: Logger
  readonly tracer: Tracer | undefined
  /** Undefined unless this process only observes. */
  readonly seen?: SeenPods
}

export class ObservedScheduling {
  readonly #deps: Dependencies
  /** NodePool of the planned node, by UID of the pod. */
  readonly #noted = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<LaunchOutcome> {
    const { decider, inputs, memory, observed, seen, tracer } = this.#deps
    if (!observed.isAny) return 'done'
    const input = await traced(tracer, 'gather', {}, () => inputs.forPending(signal))
    if (input.pods.length === 0 || !input.hasEligiblePool) {
      seen?.refuseAll(input, 'no NodePool can launch nodes')
      this.#note([], input.pods)
      return 'done'
    }
    const result = await traced(tracer, 'decide', {}, () => decider.decide(input, signal))
    signal.throwIfAborted()
    const { claims } = result
    if (seen === undefined) this.#note(claims, input.pods)
    else {
      const launches = await seen.launches(input, result, (reduced) => decider.decide(reduced, signal))
      signal.throwIfAborted()
      if (launches.length > 0) this.#record(launches)
    }
    for (const claim of claims) for (const pod of claim.pods) memory.failed(pod, textOf(claim))
    return 'done'
  }

  /**
   * Records claims once, until their plan changes.
   * @param pods all pending pods; others are forgotten.
   */
  #note(claims: readonly NewClaim[], pods: readonly Pod[]): void {
    const waiting = new Set(pods.map(uidOf))
    for (const uid of this.#noted.keys()) if (!waiting.has(uid)) this.#noted.delete(uid)
    const fresh = claims.filter(({ nodePool, pods: own }) =>
      own.some((pod) => this.#noted.get(uidOf(pod)) !== nodePool),
    )
    for (const { nodePool, pods: own } of fresh) for (const pod of own) this.#noted.set(uidOf(pod), nodePool)
    if (fresh.length > 0) this.#record(fresh)
  }

  #record(claims: readonly NewClaim[]): void {
    const { journal, logger, seen } = this.#deps
    const pods = claims.flatMap((claim) => claim.pods)
    const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => claim.pricePerHour))
    const decision = journal.decided({
      kind: 'decision',
      reason: 'Provisioned',
      message: `${counted(claims.length, 'NodeClaim')} would be created for ${counted(pods.length, 'pod')}`,
      pods: podsNoted(pods),
      pricePerHour: { before: 0, ...(unpriced === 0 && { after: pricePerHour }) },
      observed: true,
    })
    for (const claim of claims) {
      const launch = journal.note({
        kind: 'launch',
        reason: 'Provisioned',
        message: `A NodeClaim would be created for ${counted(claim.pods.length, 'pod')}, of one of these types: ${shortened(claim.instanceTypes)}`,
        nodePool: claim.nodePool,
        pods: podsNoted(claim.pods),
        pricePerHour: {
          before: 0,
          ...(claim.pricePerHour !== undefined && { after: claim.pricePerHour }),
        },
        instances: [plannedInstance(claim)],
        decision,
        observed: true,
      })
      seen?.planned(claim, launch)
    }
    logger.info('observed: nodeclaim(s) would be created', {
      nodeclaims: claims.length,
      Pods: podList(pods),
      decision,
    })
  }
}

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? keyOf(metadata)

function textOf({ nodePool, instanceTypes }: NewClaim): string {
  return `NodePool ${nodePool} would launch a node for it (${shortened(instanceTypes)}), but is only observed`
}
