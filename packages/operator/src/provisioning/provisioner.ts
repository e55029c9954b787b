/** Launches nodes for pods that cannot be scheduled (scheduling.md 3, 12). */
import { type Clock, type Logger, traced, type Tracer } from '@tenon/runtime'
import { isExpectedFailure } from '../cloud/expected-failures.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { LoopSpec } from '../controller.ts'
import type { FrameworkMetrics } from '../metrics/framework/framework.ts'
import type { PassAges } from '../metrics/waiting.ts'
import type { Batcher } from './batcher.ts'
import type { LaunchOutcome } from './launcher.ts'
import { karpenterKinds } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isWhole } from '../state/readable.ts'

/** Knowledge that a decision needs first. */
interface Preparation {
  settle(signal: AbortSignal): Promise<void>
}

interface Pass {
  run(signal: AbortSignal): Promise<LaunchOutcome>
}

interface Dependencies {
  readonly batcher: Batcher
  /** Each follows the cluster until the function that it returns is called. */
  readonly followers: readonly { follow(): () => void }[]
  /** In order. */
  readonly preparations: readonly Preparation[]
  readonly state: Pick<ClusterState, 'decidable'>
  /** In order; after one whose decision was overtaken, the rest is skipped. */
  readonly passes: readonly Pass[]
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly clock: Clock
  readonly logger: Logger
  readonly tracer: Tracer | undefined
}

const controller = 'provisioner'
const statePollMs = 250
const longestRetryMs = 10_000

/** Runs until `signal` aborts. A pass that fails or is overtaken is tried again; errors are logged. */
export class Provisioner implements LoopSpec {
  readonly name = controller
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async loop(signal: AbortSignal): Promise<void> {
    const { batcher, clock, followers, framework, passAges } = this.#deps
    passAges.complete(controller)
    framework.known(controller)
    const stops = followers.map((each) => each.follow())
    let startedMs = clock.monotonic()
    let failures = 0
    while (!signal.aborted) {
      try {
        const openedMs = await batcher.wait(signal)
        startedMs = clock.monotonic()
        passAges.waiting(controller)
        if ((await this.#batch(openedMs, signal)) === 'done') {
          passAges.complete(controller)
          framework.passed(controller, 'success', clock.monotonic() - startedMs)
          failures = 0
          continue
        }
        framework.passed(controller, 'requeue', clock.monotonic() - startedMs)
      } catch (error) {
        if (signal.aborted) break
        this.#logFailure(error)
        framework.passed(controller, 'error', clock.monotonic() - startedMs)
      }
      failures++
      await clock.sleep(Math.min(longestRetryMs, 2 ** failures * 100), signal).catch(() => undefined)
      batcher.trigger('retry')
    }
    for (const stop of stops) stop()
  }

  /** One trace for each batch (adoption.md 4). @param openedMs when it began, by the monotonic clock. */
  async #batch(openedMs: number, signal: AbortSignal): Promise<LaunchOutcome> {
    const { clock, tracer } = this.#deps
    const since = tracer && { startMs: tracer.now() - (clock.monotonic() - openedMs) }
    return await traced(tracer, 'batch', { parent: 'none', ...since }, async () => {
      await traced(tracer, 'wait', { ...since }, () => this.#ready(signal))
      return await this.#pass(signal)
    })
  }

  /** Resolves when enough is known for a decision. */
  async #ready(signal: AbortSignal): Promise<void> {
    const { clock, preparations, state } = this.#deps
    for (const preparation of preparations) await preparation.settle(signal)
    // Until every created claim is launched or gone, the capacity on its way is unknown. Claims that are stuck delay only
    // their own NodePool.
    while (!state.decidable()) await clock.sleep(statePollMs, signal)
  }

  /** @returns `overtaken` when the cluster changed after the decision; the next pass makes a new one. */
  async #pass(signal: AbortSignal): Promise<LaunchOutcome> {
    const { passes } = this.#deps
    for (const pass of passes) if ((await pass.run(signal)) === 'overtaken') return 'overtaken'
    return 'done'
  }

  #logFailure(error: unknown): void {
    const { logger } = this.#deps
    if (isExpectedFailure(error)) logger.warn('Reconciler error', { controller, error })
    else logger.error('Reconciler error', { controller, error })
  }
}

interface KnownClaimsParts {
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<ClusterState, 'isManaged' | 'seed'>
}

/** Adds every NodeClaim to the cluster state before the first decision. */
export class KnownClaims {
  readonly #deps: KnownClaimsParts
  #hasLearned = false

  constructor(deps: KnownClaimsParts) {
    this.#deps = deps
  }

  /** Lists once: a late cache may not show claims of the process before. */
  async settle(signal: AbortSignal): Promise<void> {
    if (this.#hasLearned) return
    const { client, state } = this.#deps
    for (const claim of await client.list(karpenterKinds.nodeClaim, { signal }))
      if (isWhole(karpenterKinds.nodeClaim.kind, claim) && state.isManaged(claim)) state.seed(claim)
    this.#hasLearned = true
  }
}
