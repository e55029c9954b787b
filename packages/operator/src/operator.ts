/** The running autoscaler: the controllers, and the order in which they start and stop. */
import { isProviderError } from '@tenon/provider'
import { reportRefusals } from './cloud/refusals.ts'
import type { Runnable } from './controller.ts'
import { buildControllers } from './controllers.ts'
import type { SchedulingDecider } from './decide/decider.ts'
import { InlineDecider } from './decide/inline-decider.ts'
import type { NodeDecision } from './disruption/answers.ts'
import type { NodeExplainer } from './disruption/explain.ts'
import { type DrainReport, drainReports } from './node/termination/drain-report.ts'
import { correctionsShown } from './nodepool/learning.ts'
import { type CoreDependencies, OperatorCore } from './operator-core.ts'

export interface OperatorDependencies extends Omit<CoreDependencies, 'decider'> {
  /** Closed when the operator stops; without one, decisions are made in this thread. */
  readonly decider?: SchedulingDecider
}

/** One operator. `lead` may be called once. */
export class Operator extends OperatorCore {
  #controllers: readonly Runnable[] = []
  #explainer: NodeExplainer | undefined

  constructor(deps: OperatorDependencies) {
    super({ decider: new InlineDecider(deps.runtime.clock), ...deps })
  }

  /** Starts deciding and acting; call it once this process leads and has observed. */
  lead(): void {
    this.others?.follow(this.stopping.signal)
    this.unreadable.lead(this.events)
    const controllers = buildControllers(this.assembled, this.claimSweep)
    this.#controllers = controllers.runnables
    this.#explainer = controllers.explainer
    reportRefusals(this.launchGuard, this.caches, this.events, this.metrics)
    void this.identity.follow(this.stopping.signal)
    for (const controller of this.#controllers) controller.start()
    this.usableProvider.startControllers(this.stopping.signal)
  }

  /** Why each node is still there; nothing while another process leads. */
  override async decisions(): Promise<readonly NodeDecision[]> {
    return (await this.#explainer?.explain(this.stopping.signal)) ?? []
  }

  /** Instance types whose instances have less than the catalogue says, by NodePool; nothing while another process leads. */
  async smallerTypes(): Promise<readonly object[]> {
    const { capacity, provider } = this.learning ?? {}
    if (capacity === undefined || provider === undefined) return []
    const pools = this.caches.nodePools.list().filter((pool) => this.state.isManaged(pool))
    const shown = await Promise.all(
      pools.map(async (pool) => {
        const types = await provider.getInstanceTypes(pool, this.stopping.signal).catch((error: unknown) => {
          if (!isProviderError(error)) throw error
          return []
        })
        return correctionsShown(capacity, pool, types)
      }),
    )
    return shown.flat()
  }

  /** Every drain under way, with what it waits for. */
  drains(): readonly DrainReport[] {
    const { provider, runtime } = this.deps
    return drainReports(this.caches, this.state, provider.nodeClasses, runtime.clock.now())
  }

  /**
   * Stops deciding and acting. Resolves once nothing that was under way writes any more, which is before
   * {@link stop} does: a lease need not be kept until a thread has ended.
   */
  override async quiesce(): Promise<void> {
    const quiet = super.quiesce()
    await Promise.all([quiet, ...this.#controllers.map((controller) => controller.stop())])
  }
}
