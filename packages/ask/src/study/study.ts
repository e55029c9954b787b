/** Runs the controller's state and engine on a snapshot, to answer questions about it (ask.md 1). */
import { apiVersionOf, autoscalingKinds, podGroupKinds, type ResourceType } from '@tenon/api'
import { createCacheRegistry } from '@tenon/kube'
import type { Settings } from '@tenon/operator/objects'
import { OperatorCore, type PendingDecision, QuestionDecider } from '@tenon/operator/questions'
import { type Clock, eventLoopTurns, SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { CatalogueProvider } from './catalogue-provider.ts'
import { SnapshotClient } from './snapshot-client.ts'

/**
 * Always returns the time of the snapshot. Nothing else runs in the process, so waits end in the next turn of
 * the event loop instead of after a timer.
 */
class StandingClock extends SystemClock implements Clock {
  readonly #nowMs: number

  constructor(nowMs: number) {
    super()
    this.#nowMs = nowMs
  }

  override now(): number {
    return this.#nowMs
  }

  override after(ms: number, callback: () => void): () => void {
    if (ms > 0) return super.after(ms, callback)
    let isCancelled = false
    const inTurn = async (): Promise<void> => {
      await eventLoopTurns.next()
      if (!isCancelled) callback()
    }
    void inTurn()
    return () => {
      isCancelled = true
    }
  }
}

/** What computing answers needs. */
export type StudyFacts = Pick<Study, 'snapshot' | 'operator' | 'clock'>

/** A version whose scheduler honours nominations, so that only settings decide whether pods are steered. */
const gitVersion = 'v1.36.0'

export class Study {
  readonly snapshot: Snapshot
  readonly operator: OperatorCore
  readonly clock: Clock
  readonly #closed = new AbortController()

  private constructor(snapshot: Snapshot) {
    this.snapshot = snapshot
    this.clock = new StandingClock(snapshot.takenAtMs)
    const { clock } = this
    const random = new SeededRandom(1)
    const logger = silentLogger
    const client = new SnapshotClient(snapshot.objects, gitVersion, servedIn(snapshot))
    this.operator = new OperatorCore({
      kubernetes: {
        client,
        registry: createCacheRegistry({ client, clock, logger, random, isReadOnce: true }),
        events: { record: () => undefined },
      },
      provider: new CatalogueProvider(snapshot),
      runtime: { clock, random, logger },
      decider: new QuestionDecider(clock),
      settings: studied(snapshot),
    })
  }

  /** Close it to free its memory. */
  static async open(snapshot: Snapshot): Promise<Study> {
    const study = new Study(snapshot)
    await study.operator.observe(study.#closed.signal)
    // A controller does not wait for kinds that it may not be allowed to list; here they are present.
    await study.operator.caches.brakeConfigMaps?.synced(study.#closed.signal)
    await study.operator.followGroups(study.#closed.signal)
    study.operator.recall(snapshot.memory)
    return study
  }

  /**
   * Decides about the pending pods.
   * @param deadlineMs a decision that takes longer returns what it has.
   */
  async decide(deadlineMs: number = this.snapshot.settings.solveTimeoutMs): Promise<PendingDecision> {
    return await this.operator.questions().pending(deadlineMs, this.#closed.signal)
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error('the study is closed'))
    await this.operator.stop()
  }
}

/** Pod groups are served if the controller read them. ProvisioningRequests need a controller that serves them. */
function servedIn({ memory }: Snapshot): (type: ResourceType) => boolean {
  const { provisioningRequest } = autoscalingKinds
  return (type) =>
    type.plural === podGroupKinds.coscheduling.plural
      ? memory.groupVersions.includes(apiVersionOf(type))
      : type.plural !== provisioningRequest.plural
}

/** Settings for decisions on the snapshot. NodeOverlays are already applied to its catalogues. */
function studied({ settings, memory }: Snapshot): Settings {
  return {
    ...settings,
    clusterStateObservability: false,
    featureGates: {
      ...settings.featureGates,
      nodeOverlay: false,
      // Off, as the snapshot's memory already has the capacity that buffers keep.
      capacityBuffer: false,
      plannedPlacement: memory.isSteering,
    },
  }
}
