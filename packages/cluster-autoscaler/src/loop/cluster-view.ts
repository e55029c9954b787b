/** Reads the state for an iteration (cluster-autoscaler.md 2.3). */
import { consumedBy, type Node, type Pod } from '@tenon/api'
import type { NodeExample } from '@tenon/provider'
import { inSlices, messageOf, traced } from '@tenon/runtime'
import { asSeenWithGpus } from '../gpu.ts'
import type { LoopView, NodeTemplate } from '../model.ts'
import { DefaultSpread } from '../pods/default-spread.ts'
import { classify, isExpendable, type PodClasses } from '../pods/classes.ts'
import type { AutoscalerDependencies } from './dependencies.ts'
import { buildSnapshot, podsByNode } from './cluster-snapshot.ts'
import { GroupFaults } from './group-faults.ts'
import { countTaints } from './loop-metrics.ts'
import { type ResolvedGroups, resolveGroups } from './node-groups.ts'
import { LoopError } from './outcome.ts'
import { ReadableObjects } from './readable-objects.ts'
import { Stopwatch } from './stopwatch.ts'

type Dependencies = Pick<AutoscalerDependencies, 'options' | 'sources' | 'state' | 'reporting' | 'slicing'>

/** Nodes and their groups. */
export interface SeenNodes {
  /** As in the API server. */
  readonly registered: readonly Node[]
  /** The same, but nodes with a startup taint, or without their GPUs, are not ready. */
  readonly nodes: readonly Node[]
  readonly index: ResolvedGroups
}

export class ClusterViewer {
  readonly #deps: Dependencies
  readonly #faults: GroupFaults
  readonly #defaultSpread: DefaultSpread
  readonly #readable: ReadableObjects
  readonly #stopwatch: Stopwatch
  /** The last error of each group's example, so that it is logged once. */
  readonly #exampleErrors = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#faults = new GroupFaults(deps.reporting)
    this.#defaultSpread = new DefaultSpread(deps.options.loop.defaultConstraints)
    this.#readable = new ReadableObjects(deps.sources.reader, deps.reporting.logger)
    this.#stopwatch = new Stopwatch(deps.slicing.clock, deps.reporting)
  }

  /**
   * Nodes with their groups, without groups that cannot be read.
   * @throws LoopError if no group can be read.
   */
  async nodes(signal: AbortSignal): Promise<SeenNodes> {
    const { sources, state, reporting } = this.#deps
    const registered = this.#readable.nodes(sources.cache.nodes())
    countTaints(registered, state.taints, reporting.metrics)
    const { gpuLabel } = sources.nodeGroups
    const nodes = registered.map((node) => asSeenWithGpus(state.taints.asSeen(node), gpuLabel))
    const index = await this.#groups(nodes, signal)
    return { registered, nodes, index }
  }

  async pods(): Promise<PodClasses> {
    const { sources, options, slicing, state } = this.#deps
    const { applications } = sources.cache
    const judge = {
      isReadable: this.#readable.isReadablePod,
      isPlanned: (pod: Pod) => state.plans.isOurs(pod),
      isConsumer: (pod: Pod) => options.requests.isEnabled && consumedBy(pod) !== undefined,
      read: (pod: Pod) => this.#defaultSpread.read(pod, applications),
    }
    return await inSlices(classify(sources.cache.pods(), options.loop, judge), slicing)
  }

  async view(
    { nodes, index }: SeenNodes,
    classes: PodClasses,
    nowMs: number,
    signal: AbortSignal,
  ): Promise<Omit<LoopView, 'quotas'>> {
    const { options, sources, state, slicing } = this.#deps
    const { cache, reader } = sources
    const keeps = (pod: Pod) => !isExpendable(pod, options.loop.expendablePodsPriorityCutoff)
    const placed = podsByNode(classes.scheduled.filter(keeps), classes.nominated.filter(keeps))
    await slicing.turns.next()
    const present = nodes.filter(({ metadata }) => index.hasInstance.get(metadata.name) !== false)
    const snapshot = await inSlices(buildSnapshot(present, placed, reader, cache, nowMs), slicing)
    const { registry, members, templates } = state
    const instances = await members.read(index.groups.keys(), (id) => registry.hasLiveRequest(id), signal)
    await slicing.turns.next()
    const slicesByNode = Map.groupBy(cache.devices()?.slices ?? [], ({ spec }) => spec.nodeName ?? '')
    const seen = templates.update({
      nowMs,
      nodes,
      index,
      podsOn: (name) => placed.get(name) ?? [],
      daemonSets: cache.daemonSets,
      slicesOf: (name) => slicesByNode.get(name) ?? [],
      csiNodeOf: (name) => cache.volumes().csiNode(name),
    })
    const byGroup = await this.#withExamples(seen, index, signal)
    const { controllerOf, disruptionBudgets, daemonSets, deviceUse } = cache
    const lookups = { controllerOf, disruptionBudgets, daemonSets, deviceUse }
    return { nowMs, nodes, index, templates: byGroup, instances, snapshot, lookups }
  }

  /** Adds templates of groups without a known node, if the cloud can describe their nodes. */
  async #withExamples(
    seen: ReadonlyMap<string, NodeTemplate>,
    index: ResolvedGroups,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, NodeTemplate>> {
    const { sources, state } = this.#deps
    const { cache } = sources
    const all = new Map(seen)
    for (const id of index.groups.keys()) {
      const example = all.has(id) ? undefined : await this.#exampleOf(id, signal)
      if (example !== undefined) all.set(id, state.templates.ofExample(id, example, cache.daemonSets))
    }
    return all
  }

  /** Undefined if the cloud does not know, or fails: other groups must not wait for it. */
  async #exampleOf(groupId: string, signal: AbortSignal): Promise<NodeExample | undefined> {
    const { sources, reporting } = this.#deps
    try {
      return await sources.nodeGroups.exampleNode?.(groupId, signal)
    } catch (error) {
      signal.throwIfAborted()
      const reason = messageOf(error)
      if (this.#exampleErrors.get(groupId) !== reason)
        reporting.logger.warn('a new node of a node group cannot be described', { group: groupId, reason })
      this.#exampleErrors.set(groupId, reason)
      return undefined
    }
  }

  async #groups(nodes: readonly Node[], signal: AbortSignal): Promise<ResolvedGroups> {
    const { reporting, sources } = this.#deps
    const done = this.#stopwatch.start('cloudProviderRefresh')
    try {
      return await traced(reporting.tracer, 'cloudProviderRefresh', {}, async () => {
        const faults = await sources.nodeGroups.refresh(signal)
        const index = await resolveGroups(nodes, sources.nodeGroups, faults, signal)
        this.#faults.tell(index, nodes)
        return index
      })
    } catch (error) {
      signal.throwIfAborted()
      throw new LoopError('cloudProviderError', messageOf(error), { cause: error })
    } finally {
      done()
    }
  }
}
