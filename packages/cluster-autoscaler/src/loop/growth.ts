/** The part of an iteration that adds nodes (cluster-autoscaler.md 2.3, 4.1). */
import type { Pod } from '@tenon/api'
import type { Snapshot } from '@tenon/filters'
import { inSlices } from '@tenon/runtime'
import type { LoopView } from '../model.ts'
import type { PodClasses } from '../pods/classes.ts'
import { type PlacementHints, type PlannedPlaces, pendingPods } from '../pods/pending-pods.ts'
import { unbound } from '../pods/unbound.ts'
import { areAllNew, oldEnough } from '../pods/young-pods.ts'
import { isNodeReady } from '../registry/node-state.ts'
import { renderSkipReason } from '../scale-up/reasons.ts'
import { notTriggeredText } from '../scale-up/scale-up.ts'
import type { AutoscalerDependencies } from './dependencies.ts'
import { addAwaited, awaitedName } from './cluster-snapshot.ts'
import { seconds, Stopwatch } from './stopwatch.ts'

type Dependencies = Pick<
  AutoscalerDependencies,
  'options' | 'sources' | 'state' | 'actions' | 'reporting' | 'slicing'
>

export class Growth {
  readonly #deps: Dependencies
  readonly #stopwatch: Stopwatch
  readonly #hints: PlacementHints = new Map()
  readonly #lastMsByGroup = new Map<string, number>()
  #lastMs: number | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#stopwatch = new Stopwatch(deps.slicing.clock, deps.reporting)
  }

  /** When nodes were last requested; undefined = never. */
  get lastMs(): number | undefined {
    return this.#lastMs
  }

  /** The same by group id. */
  get lastMsByGroup(): ReadonlyMap<string, number> {
    return this.#lastMsByGroup
  }

  /**
   * Adds upcoming nodes to the snapshot.
   * @returns ids of groups that have some.
   */
  addUpcoming({ index, snapshot, templates, nowMs }: LoopView): ReadonlySet<string> {
    const { registry } = this.#deps.state
    const awaited = new Set<string>()
    for (const groupId of index.groups.keys()) {
      const count = registry.upcomingOf(groupId, nowMs)
      const template = templates.get(groupId)
      if (count <= 0 || template === undefined) continue
      for (const name of registry.readinessOf(groupId)?.notStarted ?? []) snapshot.removeNode(name)
      addAwaited(snapshot, { groupId, template, count })
      awaited.add(groupId)
    }
    return awaited
  }

  /** Pods that do not fit on existing and upcoming nodes. */
  async pending(view: LoopView, classes: PodClasses): Promise<readonly Pod[]> {
    const { options, actions, slicing, reporting } = this.#deps
    const done = this.#stopwatch.start('filterOutSchedulable')
    const drained = [...actions.scaleDown.nodesBeingDrained().values()].flat()
    const moving = drained.filter((pod) => isOn(view.snapshot, pod)).map(unbound)
    const wanted = [...classes.unschedulable, ...classes.unprocessed, ...moving]
    const cutoff = options.loop.expendablePodsPriorityCutoff
    const planned = this.#planned(wanted, view)
    const steps = pendingPods(wanted, view.snapshot, this.#hints, planned, cutoff)
    const { pods, overflowing } = await inSlices(steps, slicing)
    reporting.metrics.set('overflowing_controllers_count', overflowing)
    // This implementation has no time limit that skips pods.
    reporting.metrics.set('skipped_pods_count', 0, { requestor: 'filter-out-pod-list-processor' })
    done()
    this.#provideSnapshot(view, wanted, new Set(pods))
    const old = oldEnough(pods, options.loop.newPodScaleUpDelayMs, view.nowMs)
    for (const { pod, text } of old.unreadable)
      reporting.logger.debug('the delay that a pod asks for is not used', {
        pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
        delay: text,
      })
    return old.pods
  }

  /** @returns whether nothing may be removed in this iteration, as more pods are likely to come. */
  async scaleUp(pods: readonly Pod[], view: LoopView, signal: AbortSignal): Promise<boolean> {
    const { options, actions, reporting, state } = this.#deps
    const { explanations } = reporting.debugging
    if (pods.length === 0 || this.#isFull(pods, view)) return false
    if (options.loop.bypassedSchedulerNames.length === 0 && areAllNew(pods, view.nowMs)) {
      explanations.waiting(pods, 'it is very new: more of its kind may come')
      return true
    }
    explanations.waiting(pods, 'other pods were helped first')
    reporting.metrics.set('last_activity', seconds(view.nowMs), { activity: 'scaleUp' })
    const safetyOf = (id: string) => state.registry.safety(id, view.nowMs)
    const result = await this.#stopwatch.run('scaleUp', () =>
      actions.scaleUp.run({ view, pods, safetyOf }, signal),
    )
    if (result.kind === 'successful') {
      this.note(view)
      explanations.waiting(result.pods, `nodes were asked for: ${result.groups}`)
    } else if (result.kind === 'noOptions') this.#tellRefusals(result.refusals)
    else if (result.kind === 'waiting')
      explanations.waiting(pods, `node group ${result.groupId}, which would help, is still being resized`)
    else {
      explanations.waiting(pods, `nodes could not be asked for: ${result.message}`)
      reporting.logger.warn('failed to scale up', { error: result.message, isTransient: result.isTransient })
    }
    return false
  }

  /** The planned node of each pod for which nodes were requested. */
  #planned(waiting: readonly Pod[], { nodes, index, snapshot, nowMs }: LoopView): PlannedPlaces {
    const { plans } = this.#deps.state
    const uids = new Set(waiting.map(({ metadata }) => metadata.uid ?? ''))
    plans.update({ nodes, groupOf: index.groupOf, waiting: uids, nowMs })
    return plans.places(awaitedName, (name) => snapshot.node(name) !== undefined)
  }

  /** Whether `--max-nodes-total` ready nodes exist. */
  #isFull(pods: readonly Pod[], { nodes }: LoopView): boolean {
    const { options, reporting } = this.#deps
    const { maxNodesTotal } = options.scaleUp
    const ready = nodes.filter((node) => isNodeReady(node) && node.spec?.unschedulable !== true)
    if (maxNodesTotal <= 0 || ready.length < maxNodesTotal) return false
    const message = `Max total nodes in cluster reached: ${maxNodesTotal}`
    reporting.events.status('Warning', 'MaxNodesTotalReached', message)
    const [text = ''] = renderSkipReason({ kind: 'maxNodesTotal' })
    this.#tellRefusals(new Map(pods.map((pod) => [pod, text])))
    return true
  }

  #tellRefusals(refusals: ReadonlyMap<Pod, string>): void {
    const { events, debugging } = this.#deps.reporting
    for (const [pod, text] of refusals) {
      events.object(pod, 'Normal', 'NotTriggerScaleUp', notTriggeredText(text))
      debugging.explanations.waiting([pod], `no node group helps: ${text}`)
    }
  }

  /** Call it when nodes were requested in this iteration. */
  note({ index, nowMs }: LoopView): void {
    this.#lastMs = nowMs
    for (const { id, targetSize } of this.#deps.sources.nodeGroups.list())
      if (targetSize > (index.groups.get(id)?.targetSize ?? targetSize)) this.#lastMsByGroup.set(id, nowMs)
  }

  #provideSnapshot(view: LoopView, unscheduled: readonly Pod[], pending: ReadonlySet<Pod>): void {
    const { reporting, slicing } = this.#deps
    if (!reporting.debugging.snapshotz.isWanted) return
    reporting.debugging.snapshotz.provide({
      nodes: view.snapshot.nodes.flatMap(({ node, pods }) =>
        node === undefined ? [] : [{ node, pods: [...pods.values()].map(({ pod }) => pod) }],
      ),
      unscheduledPodsCanBeScheduled: unscheduled.filter((pod) => !pending.has(pod)),
      templates: view.templates,
      holds: view.index.holds,
      startMs: view.nowMs,
      endMs: slicing.clock.now(),
    })
  }
}

/** Whether a pod of a draining node still runs; once it is gone, its replacement counts instead. */
function isOn(snapshot: Snapshot, pod: Pod): boolean {
  return snapshot.node(pod.spec.nodeName ?? '')?.pods.has(pod.metadata.uid ?? '') ?? false
}
