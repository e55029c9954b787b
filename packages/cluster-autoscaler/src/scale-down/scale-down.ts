/**
 * Scale-down of the Cluster Autoscaler mode: one loop, and deletions in the background (cluster-autoscaler.md 6).
 */
import type { Node, Pod } from '@tenon/api'
import type { NodeGroups } from '@tenon/provider'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { ClusterWriter, LoopView, NodeGroupIndex, Reporting } from '../model.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import { type Choice, chooseNodes } from './choice/choose.ts'
import { delayedGroups, isInCooldown } from './choice/cooldown.ts'
import { CloudRemover } from './deletion/cloud-remover.ts'
import type { ClusterReader } from './deletion/cluster-reader.ts'
import { Deleter } from './deletion/deleter.ts'
import type { DeletionJob, DeletionKind, DeletionReason, DeletionResult } from './deletion/deletion-job.ts'
import { DeletionTracker } from './deletion/deletion-tracker.ts'
import { Evictor } from './deletion/evictor.ts'
import { NodeDeletion } from './deletion/node-deletion.ts'
import { NodeMarker } from './deletion/node-marker.ts'
import { writeSoftTaints } from './deletion/soft-tainter.ts'
import { cleanHardTaint, cleanSoftTaint, hardTainted, staleCandidates } from './deletion/startup-cleanup.ts'
import { TaintLatency } from './deletion/taint-latency.ts'
import { softTaintChanges } from './nodes/soft-taints.ts'
import type { ScaleDownInput, ScaleDownOutcome, ScaleDownStep } from './outcome.ts'
import { type Plan, Planner, type UnneededNode } from './planning/planner.ts'
import type { UnremovableNode } from './reasons.ts'
import { ScaleDownMetrics } from './scale-down-metrics.ts'

export interface ScaleDownDependencies {
  readonly options: AutoscalerOptions
  readonly nodeGroups: Pick<NodeGroups, 'deleteInstances' | 'gpuLabel' | 'groupOf' | 'holdOf' | 'instances'>
  readonly cluster: {
    readonly reader: ClusterReader
    readonly writer: ClusterWriter
    /** Whether the API server is still that of the known cluster; the reason is reported elsewhere. */
    readonly mayRemove: () => Promise<boolean>
  }
  readonly reporting: Reporting
  readonly slicing: Slicing & { readonly clock: Clock }
  /** Called when a deletion has ended, unless the signal ended it. */
  readonly ended: (result: DeletionResult) => void
}

export class ScaleDown {
  readonly #deps: ScaleDownDependencies
  readonly #planner: Planner
  readonly #tracker = new DeletionTracker()
  readonly #marker: NodeMarker
  readonly #deleter: Deleter
  readonly #metrics: ScaleDownMetrics
  /** Names of nodes with a deletion taint at the start that could not be cleaned up yet. */
  readonly #uncleaned = new Set<string>()
  #lastDeletionStartedMs: number | undefined
  #lastFailureMs: number | undefined

  constructor(deps: ScaleDownDependencies) {
    this.#deps = deps
    const { options, nodeGroups, cluster, reporting, ended } = deps
    const { reader, writer } = cluster
    const { events, logger } = reporting
    const { clock } = deps.slicing
    const { maxPodEvictionMs, nodeDeletionBatcherIntervalMs: batchIntervalMs } = options.scaleDown
    this.#planner = new Planner(options.scaleDown)
    this.#marker = new NodeMarker({ writer, events, clock, logger, cordons: this.#cordons })
    const look = { options, reader, clock }
    const remover = new CloudRemover({ ...look, nodeGroups, clock, logger, batchIntervalMs })
    const deletion = new NodeDeletion({
      options,
      reader,
      steps: {
        latency: new TaintLatency(reader, clock),
        evictor: new Evictor({ reader, writer, reporting, clock, maxPodEvictionMs }),
        remover,
      },
      clock,
      logger,
    })
    this.#deleter = new Deleter({
      marker: this.#marker,
      deletion,
      remover,
      tracker: this.#tracker,
      reporting,
      look,
      clock,
      ended,
    })
    this.#metrics = new ScaleDownMetrics(reporting.metrics, clock, options.scaleDown)
  }

  /**
   * Call it once before the first {@link update}: ends deletions of an earlier process, and restores its timers within
   * `--node-deletion-candidate-ttl`.
   */
  async startUp(nodes: readonly Node[], index: NodeGroupIndex, signal: AbortSignal): Promise<void> {
    const { options, slicing } = this.#deps
    const { clock } = slicing
    this.#planner.restore(nodes, clock.now())
    for (const { metadata } of hardTainted(nodes)) this.#uncleaned.add(metadata.name)
    await this.#clean(nodes, index, signal)
    const { maxBulkSoftTaintCount, nodeDeletionCandidateTtlMs } = options.scaleDown
    if (maxBulkSoftTaintCount > 0) return
    for (const node of staleCandidates(nodes, clock.now(), nodeDeletionCandidateTtlMs)) {
      await cleanSoftTaint(node, this.#cleanup(), signal)
    }
  }

  /**
   * One loop. Resolves when deletions have started; they continue in the background.
   * @param signal aborts when leadership is lost: deletions end where they are.
   */
  async update(input: ScaleDownInput, signal: AbortSignal): Promise<ScaleDownOutcome> {
    const { options } = this.#deps
    this.#tracker.forgetGone(input.view.nodes)
    await this.#clean(input.view.nodes, input.view.index, signal)
    await this.#marker.retryLeftovers((name) => this.#tracker.isInProgress(name), signal)
    if (!options.scaleDown.enabled) return this.#outcome({ kind: 'disabled' }, noPlan, [])
    const plan = await this.#plan(input, signal)
    const isCooling = isInCooldown({
      nowMs: input.view.nowMs,
      isForbidden: input.isForbidden,
      delays: options.scaleDown,
      last: {
        scaleUpMs: input.lastScaleUpMs,
        deletionMs: this.#lastDeletionStartedMs,
        failureMs: this.#lastFailureMs,
      },
    })
    const choice = isCooling || plan.unneeded.length === 0 ? undefined : this.#choose(plan, input.view)
    this.#metrics.plan(plan, choice, {
      isCooling,
      nowMs: input.view.nowMs,
      groupOptions: input.view.index.options,
    })
    const step =
      choice === undefined ? idleStep(isCooling) : await this.#start(choice, input.view.nowMs, signal)
    await this.#softTaint(plan, input, signal)
    return this.#outcome(step, plan, choice?.refused ?? [])
  }

  /** Forgets since when nodes are unneeded, as the state of the cluster does not allow to tell. */
  clearUnneeded(): void {
    this.#planner.clear()
    this.#metrics.clearUnneeded()
  }

  /** Pods that must move, by the name of the draining node; some may have moved already. */
  nodesBeingDrained(): ReadonlyMap<string, readonly Pod[]> {
    return this.#tracker.draining()
  }

  /** By group id; groups without any are absent. */
  deletionsInProgress(): ReadonlyMap<string, number> {
    return this.#tracker.countsByGroup()
  }

  async #plan(input: ScaleDownInput, signal: AbortSignal): Promise<Plan> {
    const { options, slicing } = this.#deps
    const { clock } = slicing
    const { view, candidates: nodes, lastScaleUpMsByGroup } = input
    const startMs = clock.monotonic()
    const endMs = startMs + options.scaleDown.simulationTimeoutMs
    const lastTimes = this.#tracker.lastTimes(lastScaleUpMsByGroup)
    const steps = this.#planner.update({
      view,
      nodes,
      goingNodes: this.#tracker.goingNodes(),
      delayedUntilMs: delayedGroups(view.nowMs, lastTimes, options.scaleDown),
      shouldStop: () => signal.aborted || clock.monotonic() > endMs,
    })
    const plan = await inSlices(steps, slicing)
    signal.throwIfAborted()
    this.#metrics.duration('findUnneeded', startMs)
    return plan
  }

  #choose(plan: Plan, view: LoopView): Choice {
    return chooseNodes({
      nowMs: view.nowMs,
      unneeded: plan.unneeded,
      nodes: view.nodes,
      groups: view.index.groups,
      groupOptions: view.index.options,
      gpuLabel: this.#deps.nodeGroups.gpuLabel,
      inProgress: this.#tracker.countsByGroup(),
      draining: this.#tracker.draining().size,
      options: this.#deps.options.scaleDown,
    })
  }

  async #start(choice: Choice, nowMs: number, signal: AbortSignal): Promise<ScaleDownStep> {
    const { options, reporting, slicing, cluster } = this.#deps
    const { clock } = slicing
    if (choice.empty.length + choice.drain.length === 0) return { kind: 'nothingToDelete' }
    if (options.isDryRun) {
      const wanted = { empty: choice.empty.map(nameOf), drain: choice.drain.map(nameOf) }
      reporting.logger.info('dry run: would remove nodes', wanted)
      return { kind: 'started', ...wanted }
    }
    if (!(await cluster.mayRemove())) return { kind: 'nothingToDelete' }
    const startMs = clock.monotonic()
    const empty = choice.empty.map((each) => jobOf(each, 'empty'))
    const drain = choice.drain.map((each) => jobOf(each, 'drain'))
    const start = await this.#deleter.start(empty, drain, signal)
    this.#metrics.duration('scaleDown:nodeDeletion', startMs)
    this.#metrics.removals(removed(choice, new Set(start.started.map(({ node }) => node))), nowMs)
    if (start.kind === 'failed') {
      this.#lastFailureMs = nowMs
      return { kind: 'failed', error: 'apiCallError', message: start.message }
    }
    if (start.started.length === 0) return { kind: 'nothingToDelete' }
    this.#lastDeletionStartedMs = nowMs
    return {
      kind: 'started',
      empty: namesOf(start.started, 'empty'),
      drain: namesOf(start.started, 'drain'),
    }
  }

  async #softTaint(plan: Plan, { view }: ScaleDownInput, signal: AbortSignal): Promise<void> {
    const { options, cluster, reporting, slicing } = this.#deps
    const { clock } = slicing
    const { maxBulkSoftTaintCount: maxCount, maxBulkSoftTaintMs: maxMs } = options.scaleDown
    if (maxCount <= 0) return
    const startMs = clock.monotonic()
    const changes = softTaintChanges({
      nodes: view.nodes.filter(({ metadata }) => view.index.groupOf.has(metadata.name)),
      unneeded: new Set(plan.unneeded.map(nameOf)),
      going: this.#tracker.goingNodes(),
    })
    const writing = { writer: cluster.writer, clock, logger: reporting.logger, maxCount, maxMs }
    await writeSoftTaints(changes, writing, signal)
    this.#metrics.duration('scaleDown:softTaintUnneeded', startMs)
  }

  /** Nodes with an unknown group at the start are cleaned up once it is known. */
  async #clean(nodes: readonly Node[], index: NodeGroupIndex, signal: AbortSignal): Promise<void> {
    if (this.#uncleaned.size === 0) return
    const byName = new Map(hardTainted(nodes).map((node) => [node.metadata.name, node]))
    for (const name of this.#uncleaned) {
      const node = byName.get(name)
      if (node === undefined || this.#tracker.isInProgress(name)) this.#uncleaned.delete(name)
      else if (index.groupOf.has(name) && (await cleanHardTaint(node, this.#cleanup(), signal))) {
        this.#uncleaned.delete(name)
      }
    }
  }

  get #cordons(): boolean {
    return this.#deps.options.scaleDown.cordonNodeBeforeTerminating
  }

  #cleanup(): Parameters<typeof cleanHardTaint>[1] {
    const { cluster, reporting } = this.#deps
    return {
      writer: cluster.writer,
      events: reporting.events,
      logger: reporting.logger,
      cordons: this.#cordons,
    }
  }

  #outcome(step: ScaleDownStep, plan: Plan, refused: readonly UnremovableNode[]): ScaleDownOutcome {
    const candidatesByGroup = new Map<string, number>()
    for (const { groupId } of plan.unneeded) {
      candidatesByGroup.set(groupId, (candidatesByGroup.get(groupId) ?? 0) + 1)
    }
    return {
      step,
      unneeded: plan.unneeded,
      unremovable: [...plan.unremovable, ...refused],
      candidatesByGroup,
      lastDeletionStartedMs: this.#lastDeletionStartedMs,
    }
  }
}

const noPlan: Plan = { unneeded: [], unremovable: [], isCut: false, longestSkipMs: 0 }

function idleStep(isCooling: boolean): ScaleDownStep {
  return { kind: isCooling ? 'cooldown' : 'nothingToDelete' }
}

function nameOf({ node }: UnneededNode): string {
  return node.metadata.name
}

/** Those whose deletion has begun. */
function removed(choice: Choice, started: ReadonlySet<Node>): readonly UnneededNode[] {
  return [...choice.empty, ...choice.drain].filter(({ node }) => started.has(node))
}

function namesOf(jobs: readonly DeletionJob[], kind: DeletionKind): readonly string[] {
  return jobs.filter((job) => job.kind === kind).map(({ node }) => node.metadata.name)
}

function jobOf(unneeded: UnneededNode, kind: DeletionKind): DeletionJob {
  const { node, groupId, utilization, drain, isReady } = unneeded
  const ofReady: DeletionReason = kind === 'empty' ? 'empty' : 'underutilized'
  // Without pods that only the simulation has moved there.
  const pods = drain.toMove.filter(({ spec }) => spec.nodeName === node.metadata.name)
  return { node, groupId, kind, utilization, pods, reason: isReady ? ofReady : 'unready' }
}
