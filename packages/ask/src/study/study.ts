/** A snapshot that is open for questions: the state and the engine of the controller, fed from it (ask.md 1). */
import { apiVersionOf, autoscalingKinds, podGroupKinds, type ResourceType } from '@tenon/api'
import { createCacheRegistry } from '@tenon/kube'
import type { Settings } from '@tenon/operator/objects'
import { OperatorCore, type PendingDecision, QuestionDecider } from '@tenon/operator/questions'
import { type Clock, eventLoopTurns, SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { CatalogueProvider } from './catalogue-provider.ts'
import { SnapshotClient } from './snapshot-client.ts'

/**
 * It is always the time of the snapshot, however long something takes. Nobody else is served meanwhile, so that who
 * gives way to others goes on in the next turn, without the millisecond of a timer.
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

/** What answers are worked out from. */
export type StudyFacts = Pick<Study, 'snapshot' | 'operator' | 'clock'>

/** Its scheduler honours nominations, so that settings alone decide whether pods are steered. */
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
        registry: createCacheRegistry({ client, clock, logger, random, useStreamedList: false }),
        events: { record: () => undefined },
      },
      provider: new CatalogueProvider(snapshot),
      runtime: { clock, random, logger },
      decider: new QuestionDecider(clock),
      settings: studied(snapshot),
    })
  }

  /** Close it to let go of what it holds. */
  static async open(snapshot: Snapshot): Promise<Study> {
    const study = new Study(snapshot)
    await study.operator.observe(study.#closed.signal)
    // A controller does not wait for what may be denied to it; here it is there.
    await study.operator.caches.brakeConfigMaps?.synced(study.#closed.signal)
    await study.operator.followGroups(study.#closed.signal)
    study.operator.recall(snapshot.memory)
    return study
  }

  /**
   * Decides about the pods that wait.
   * @param deadlineMs a decision that takes longer ends with what it has.
   */
  async decide(deadlineMs: number = this.snapshot.settings.solveTimeoutMs): Promise<PendingDecision> {
    return await this.operator.questions().pending(deadlineMs, this.#closed.signal)
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error('the study is closed'))
    await this.operator.stop()
  }
}

/** Groups count as far as the controller read them. ProvisioningRequests need a controller that looks after them. */
function servedIn({ memory }: Snapshot): (type: ResourceType) => boolean {
  const { provisioningRequest } = autoscalingKinds
  return (type) =>
    type.plural === podGroupKinds.coscheduling.plural
      ? memory.groupVersions.includes(apiVersionOf(type))
      : type.plural !== provisioningRequest.plural
}

/** The settings of decisions on the snapshot. What it lists has the overlays on it. */
function studied({ settings, memory }: Snapshot): Settings {
  return {
    ...settings,
    clusterStateObservability: false,
    featureGates: {
      ...settings.featureGates,
      nodeOverlay: false,
      // Its memory tells what room is kept.
      capacityBuffer: false,
      plannedPlacement: memory.isSteering,
    },
  }
}
