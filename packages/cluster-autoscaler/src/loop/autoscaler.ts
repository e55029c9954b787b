/** Iterates over the cluster and its node groups (cluster-autoscaler.md 2.3). */
import type { Node, Pod } from '@tenon/api'
import { messageOf } from '@tenon/runtime'
import { gpuLabels } from '../gpu.ts'
import type { LoopView } from '../model.ts'
import type { PodClasses } from '../pods/classes.ts'
import { applyUpdate, fixSizes } from '../registry/effects.ts'
import { isNodeReady } from '../registry/node-state.ts'
import { ClusterViewer } from './cluster-view.ts'
import type { AutoscalerDependencies } from './dependencies.ts'
import { Growth } from './growth.ts'
import { ClusterMetrics } from './loop-metrics.ts'
import { LoopError, type LoopOutcome } from './outcome.ts'
import { reportOf } from './report.ts'
import { seconds, Stopwatch } from './stopwatch.ts'

/** How long no node must be ready before that is reported. */
const reportAfterMs = 10 * 60_000

export class Autoscaler {
  readonly #deps: AutoscalerDependencies
  readonly #viewer: ClusterViewer
  readonly #growth: Growth
  readonly #clusterMetrics: ClusterMetrics
  readonly #stopwatch: Stopwatch
  readonly #startMs: number
  #isStarted = false
  #candidatesByGroup: ReadonlyMap<string, number> = new Map()
  #lastDeletionMs: number | undefined

  constructor(deps: AutoscalerDependencies) {
    this.#deps = deps
    this.#viewer = new ClusterViewer(deps)
    this.#growth = new Growth(deps)
    this.#clusterMetrics = new ClusterMetrics(deps.options, deps.reporting.metrics)
    this.#stopwatch = new Stopwatch(deps.slicing.clock, deps.reporting)
    this.#startMs = deps.slicing.clock.now()
  }

  /** When nodes were last added, removals begun, or a request examined; undefined = never. */
  get lastChangeMs(): number | undefined {
    const { requests } = this.#deps.actions
    const times = [this.#growth.lastMs, this.#lastDeletionMs, requests?.lastMs].filter(
      (each) => each !== undefined,
    )
    return times.length === 0 ? undefined : Math.max(...times)
  }

  /** Call it when nodes or pods have changed, as waiting pods may need a nomination. */
  noteChange(signal: AbortSignal): void {
    void this.#deps.actions.nominator?.look(signal)
  }

  /** Only rejects when the signal aborts. */
  async runOnce(signal: AbortSignal): Promise<LoopOutcome> {
    return await this.#stopwatch.run('main', () => this.#runOnce(signal))
  }

  async #runOnce(signal: AbortSignal): Promise<LoopOutcome> {
    const { reporting, slicing } = this.#deps
    const nowMs = slicing.clock.now()
    reporting.metrics.set('last_activity', seconds(nowMs), { activity: 'main' })
    reporting.health.noteActivity()
    const isSnapshotWanted = reporting.debugging.snapshotz.isWanted
    const outcome = await this.#attempt(nowMs, signal)
    signal.throwIfAborted()
    this.noteChange(signal)
    const endMs = slicing.clock.now()
    if (isSnapshotWanted && reporting.debugging.snapshotz.isWanted)
      reporting.debugging.snapshotz.fail(
        outcome.kind === 'failed' ? outcome.message : 'the loop ended early',
        endMs,
      )
    if (outcome.kind === 'done')
      reporting.metrics.set('last_activity', seconds(endMs), { activity: 'mainSuccessful' })
    else {
      reporting.metrics.add('errors_total', 1, { type: outcome.type })
      reporting.logger.error('the loop failed', { type: outcome.type, error: outcome.message })
    }
    if (outcome.kind === 'done' || outcome.type === 'transientError') reporting.health.noteSuccess()
    return outcome
  }

  async #attempt(nowMs: number, signal: AbortSignal): Promise<LoopOutcome> {
    try {
      await this.#iterate(nowMs, signal)
      return { kind: 'done' }
    } catch (error) {
      signal.throwIfAborted()
      const message = messageOf(error)
      if (error instanceof LoopError) return { kind: 'failed', type: error.type, message }
      this.#deps.reporting.logger.error('an iteration threw', { error })
      return { kind: 'failed', type: 'internalError', message }
    }
  }

  async #iterate(nowMs: number, signal: AbortSignal): Promise<void> {
    const { options, actions, reporting } = this.#deps
    const { explanations } = reporting.debugging
    explanations.begin(nowMs)
    const seen = await this.#viewer.nodes(signal)
    explanations.nodes(seen.nodes, seen.index)
    if (!this.#isStarted && !options.isDryRun)
      await actions.scaleDown.startUp(seen.registered, seen.index, signal)
    this.#isStarted = true
    if (!options.loop.scaleUpFromZero && (await this.#waitsForNodes(seen.nodes, nowMs, signal))) return
    const classes = await this.#viewer.pods()
    await actions.requests?.begin(nowMs, signal)
    actions.requests?.reportConsumers(classes.consumers)
    const seenView = await this.#viewer.view(seen, classes, nowMs, signal)
    await this.#updateRegistry(seenView, signal)
    const view = { ...seenView, quotas: this.#deps.state.quotas.uses(seenView) }
    try {
      await this.#scale(view, classes, signal)
    } finally {
      await this.#report(view, signal)
    }
  }

  /** `--scale-up-from-zero=false`: nothing is scaled while there is no ready node. */
  async #waitsForNodes(nodes: readonly Node[], nowMs: number, signal: AbortSignal): Promise<boolean> {
    const isReady = (node: Node) => isNodeReady(node) && node.spec?.unschedulable !== true
    if (nodes.some(isReady)) return false
    const message = nodes.length === 0 ? 'Cluster has no nodes.' : 'Cluster has no ready nodes.'
    const { reporting } = this.#deps
    this.#clearUnneeded()
    await reporting.status.write({ kind: 'initializing', message }, signal)
    if (nodes.length === 0 || nowMs - this.#startMs > reportAfterMs)
      reporting.events.status('Warning', 'ClusterUnhealthy', message)
    return true
  }

  async #updateRegistry(view: Omit<LoopView, 'quotas'>, signal: AbortSignal): Promise<void> {
    const { state, sources, reporting } = this.#deps
    const effects = {
      groups: sources.nodeGroups,
      events: reporting.events,
      logger: reporting.logger,
      countFailure: (groupId: string, reason: string, nodes: number) => {
        const labels = gpuLabels(view.templates.get(groupId)?.node)
        reporting.metrics.add('failed_scale_ups_total', 1, { reason, ...labels, dra_drivers: '' })
        if (labels.gpu_name !== '')
          reporting.metrics.add('failed_gpu_scale_ups_total', 1, { reason, ...labels })
        reporting.metrics.add('failed_node_creations_total', nodes, { reason })
      },
    }
    await this.#stopwatch.run('updateClusterState', async () => {
      await this.#deps.slicing.turns.next()
      await applyUpdate(state.registry.update(view), effects, signal)
    })
  }

  async #scale(view: LoopView, classes: PodClasses, signal: AbortSignal): Promise<void> {
    const { options, state, reporting, actions } = this.#deps
    const { registry } = state
    if (!options.isDryRun) {
      const removals = registry.oldUnregistered(view.nowMs, (id) => actions.remover.inProgress(id))
      actions.remover.removeUnregistered(removals, signal)
    }
    if (!registry.isClusterHealthy()) {
      this.#clearUnneeded()
      reporting.events.status('Warning', 'ClusterUnhealthy', 'Cluster is unhealthy')
      return
    }
    if (!options.isDryRun && (await this.#repairSizes(view.nowMs, signal))) return
    reporting.metrics.set('last_activity', seconds(view.nowMs), { activity: 'autoscaling' })
    for (const [type, list] of [
      ['unschedulable', classes.unschedulable],
      ['scheduler_unprocessed', classes.unprocessed],
    ] as const)
      reporting.metrics.set('unschedulable_pods_count', list.length, { type })
    const awaited = this.#growth.addUpcoming(view)
    await actions.requests?.book(view)
    const pending = await this.#growth.pending(view, classes)
    const isForbidden = await this.#grow(pending, view, signal)
    await this.#scaleDown(view, awaited, isForbidden, signal)
    if (options.loop.enforceNodeGroupMinSize)
      await actions.scaleUp.toMinSizes({ view, safetyOf: (id) => registry.safety(id, view.nowMs) }, signal)
  }

  /**
   * ProvisioningRequests and pending pods take turns.
   * @returns whether nothing may be removed in this iteration.
   */
  async #grow(pending: readonly Pod[], view: LoopView, signal: AbortSignal): Promise<boolean> {
    const { actions, reporting, state } = this.#deps
    if (actions.requests?.isTurn(pending.length > 0, view.nowMs) !== true)
      return await this.#growth.scaleUp(pending, view, signal)
    reporting.debugging.explanations.waiting(pending, 'a ProvisioningRequest was looked at first')
    const safetyOf = (id: string) => state.registry.safety(id, view.nowMs)
    if (await actions.requests.serve({ view, safetyOf }, signal)) this.#growth.note(view)
    return false
  }

  /**
   * Removes failed members, and lowers sizes that were not reached.
   * @returns whether sizes changed.
   */
  async #repairSizes(nowMs: number, signal: AbortSignal): Promise<boolean> {
    const { state, sources, reporting, actions } = this.#deps
    actions.remover.removeFailed(state.registry.instancesToReplace(), signal)
    const dependencies = { groups: sources.nodeGroups, logger: reporting.logger }
    return await fixSizes(state.registry.sizeFixes(nowMs), dependencies, signal)
  }

  /** @param awaited groups with upcoming nodes. */
  async #scaleDown(
    view: LoopView,
    awaited: ReadonlySet<string>,
    isForbidden: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { actions, reporting, state } = this.#deps
    const { index } = view
    reporting.metrics.set('last_activity', seconds(view.nowMs), { activity: 'scaleDown' })
    const starting = new Set([...awaited].flatMap((id) => state.registry.readinessOf(id)?.notStarted ?? []))
    const candidates = view.nodes.filter(({ metadata: { name } }) => !starting.has(name))
    const { lastMs, lastMsByGroup } = this.#growth
    const last = { lastScaleUpMs: lastMs, lastScaleUpMsByGroup: lastMsByGroup }
    const outcome = await this.#stopwatch.run('scaleDown', () =>
      actions.scaleDown.update({ view, candidates, isForbidden, ...last }, signal),
    )
    this.#candidatesByGroup = outcome.candidatesByGroup
    reporting.debugging.explanations.scaleDown(outcome, index.groupOf)
    this.#lastDeletionMs = outcome.lastDeletionStartedMs
    if (outcome.step.kind === 'failed') throw new LoopError(outcome.step.error, outcome.step.message)
  }

  #clearUnneeded(): void {
    this.#deps.actions.scaleDown.clearUnneeded()
    this.#candidatesByGroup = new Map()
  }

  async #report(view: LoopView, signal: AbortSignal): Promise<void> {
    const { index, nodes, nowMs } = view
    const { state, reporting, sources } = this.#deps
    const groups = new Map(sources.nodeGroups.list().map((group) => [group.id, group]))
    const report = {
      ...reportOf(nowMs, { ...index, groups }, state.registry, this.#candidatesByGroup),
      quotas: state.quotas.reports(view),
    }
    this.#clusterMetrics.show(report, nodes)
    reporting.debugging.explanations.groups(groups.values(), report)
    await reporting.status.write(report, signal)
    await state.quotas.write(view, signal)
  }
}
