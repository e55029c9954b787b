/** Adds nodes for unschedulable pods (cluster-autoscaler.md 4). */
import { ownValue, type Pod } from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import type { NodeGroup, NodeGroups } from '@tenon/provider'
import { type Clock, inSlices, messageOf, type Slicing } from '@tenon/runtime'
import { gpuLabels, type GpuLabels } from '../gpu.ts'
import {
  limitReasons,
  type LoopView,
  type NodeGroupIndex,
  type NodeTemplate,
  type Reporting,
} from '../model.ts'
import type { ScaleUpOptions } from '../options/options.ts'
import { plannedNodes, type PodPlans } from '../placement/pod-plans.ts'
import type { PodGroup } from '../pods/equivalence.ts'
import { nodeLike } from '../templates/node-templates.ts'
import type { GroupIncrease } from './balancing.ts'
import { increasesFor } from './increases.ts'
import type { ExpansionOption } from './option.ts'
import { QuotaTracker } from './quotas.ts'
import { renderExceeded, renderRefusals, renderSkipReason, type SkipReason } from './reasons.ts'
import { type GroupSafety, type Search, searchOptions, type SearchQuestion } from './search.ts'

/** What the registry learns about increases. */
export interface ScaleUpRegistry {
  registerScaleUp(groupId: string, delta: number, nowMs: number): void
  registerFailedScaleUp(
    groupId: string,
    failure: { readonly code: string; readonly message: string },
    nowMs: number,
  ): void
}

/** Executes increases, and records them. */
interface Cloud {
  readonly nodeGroups: NodeGroups
  readonly registry: ScaleUpRegistry
  /** Stores which pods the new nodes are for. */
  readonly plans: Pick<PodPlans, 'add'>
  /** Nothing is requested from the cloud. */
  readonly isDryRun: boolean
}

export interface ScaleUpDependencies {
  readonly options: ScaleUpOptions
  readonly cloud: Cloud
  readonly reporting: Reporting
  readonly chooser: (
    options: readonly ExpansionOption[],
    signal: AbortSignal,
  ) => Promise<ExpansionOption | undefined>
  readonly reader: PodReader
  readonly slicing: Slicing & { readonly clock: Clock }
}

export interface ScaleUpQuestion {
  readonly view: LoopView
  readonly pods: readonly Pod[]
  readonly safetyOf: (groupId: string) => GroupSafety
}

/** Nodes were requested, or would have been in a dry run. */
interface Successful {
  readonly kind: 'successful'
  readonly pods: readonly Pod[]
  /** `{group from->to (max: m)}` for each. */
  readonly groups: string
}

export type ScaleUpResult =
  | Successful
  /** `refusals`: text for each pod that no group helps. */
  | { readonly kind: 'noOptions'; readonly refusals: ReadonlyMap<Pod, string> }
  /** The group that would help is still being resized. */
  | { readonly kind: 'waiting'; readonly groupId: string }
  | { readonly kind: 'failed'; readonly message: string; readonly isTransient: boolean }

/** The result of requesting nodes for all of some pods, or for none. */
export type WholeResult =
  | { readonly kind: 'successful'; readonly groups: string }
  | { readonly kind: 'waiting' }
  /** `pod`: one that fits in no group, if that is the reason. */
  | { readonly kind: 'refused'; readonly message: string; readonly pod: Pod | undefined }

const cloudError = 'cloudProviderError'

export class ScaleUp {
  readonly #deps: ScaleUpDependencies
  /** Groups whose last increase has not settled. */
  readonly #resizing = new Set<string>()
  /** What the current loop has left; every increase of the loop takes from it. */
  #ofLoop: { readonly view: LoopView; readonly quotas: QuotaTracker } | undefined

  constructor(deps: ScaleUpDependencies) {
    this.#deps = deps
  }

  /** Adds nodes for the pods; with `--salvo-scale-up` repeatedly for the remaining ones. */
  async run(question: ScaleUpQuestion, signal: AbortSignal): Promise<ScaleUpResult> {
    const { options, slicing } = this.#deps
    const start = slicing.clock.monotonic()
    let { pods } = question
    let total: Successful | undefined
    for (;;) {
      const { result, helped } = await this.#once({ ...question, pods }, signal)
      if (result.kind !== 'successful') return total ?? result
      total = total === undefined ? result : together(total, result)
      pods = pods.filter((pod) => !helped.has(pod))
      const isOver = slicing.clock.monotonic() - start > options.salvoScaleUpBudgetMs
      if (!options.salvoScaleUp || helped.size === 0 || pods.length === 0 || isOver) return total
    }
  }

  /**
   * Adds nodes of one group, or of similar groups, that hold all of the pods, or none (gangs.md 3). Events go to the
   * ProvisioningRequest, as the pods do not exist.
   */
  async whole(question: ScaleUpQuestion, signal: AbortSignal): Promise<WholeResult> {
    const { chooser, reporting } = this.#deps
    const { found, search } = await this.#search(question, signal)
    const whole = found.options.filter(({ pods }) => pods.length === question.pods.length)
    const { quotas } = search
    const allowed = whole.filter(({ template, nodeCount }) => quotas.most(template, nodeCount) === nodeCount)
    const best = await chooser(allowed.length > 0 ? allowed : whole, signal)
    if (best === undefined) return refusalOf(found, whole.length > 0)
    if (this.#resizing.has(best.groupId)) return { kind: 'waiting' }
    const exceeded = quotas.exceededBy(best.template, best.nodeCount).map(renderExceeded)
    const { groups } = increasesFor(best, found, search)
    const nodes = groups.reduce((sum, { group, newSize }) => sum + newSize - group.targetSize, 0)
    if (nodes < best.nodeCount) {
      for (const { group, newSize } of groups)
        quotas.take(found.valid.get(group.id)?.template, group.targetSize - newSize)
      const why = exceeded.length === 0 ? '' : ` (${exceeded.join('; ')})`
      const message = `it takes ${best.nodeCount} node(s) of node group ${best.groupId}, of which the limits of the cluster and its groups allow ${nodes}${why}`
      return { kind: 'refused', message, pod: undefined }
    }
    reporting.logger.info('best option to resize', { group: best.groupId, nodes, pods: best.pods.length })
    const message = await this.#increase(groups, search.view, signal)
    if (message !== undefined) return { kind: 'refused', message, pod: undefined }
    return { kind: 'successful', groups: groups.map(sizeText).join(' ') }
  }

  /** Scales groups up to their minimum: `--enforce-node-group-min-size`. */
  async toMinSizes({ view, safetyOf }: Omit<ScaleUpQuestion, 'pods'>, signal: AbortSignal): Promise<void> {
    const { maxNodesTotal } = this.#deps.options
    const increases = increasesToMinSize({
      index: view.index,
      templates: view.templates,
      safetyOf: (id) => (this.#resizing.has(id) ? 'unhealthy' : safetyOf(id)),
      quotas: await this.#quotasOf(view, signal),
      maxNodesTotal,
    })
    for (const increase of increases) await this.#execute(increase, view, signal)
  }

  async #once(
    question: ScaleUpQuestion,
    signal: AbortSignal,
  ): Promise<{ readonly result: ScaleUpResult; readonly helped: ReadonlySet<Pod> }> {
    const { chooser, options, reporting } = this.#deps
    const { found, search } = await this.#search(question, signal)
    const { view, safetyOf } = question
    const nobody = new Set<Pod>()
    const best = await chooser(found.options, signal)
    if (best === undefined) {
      const reason: SkipReason | undefined = found.options.length > 0 ? { kind: 'notChosen' } : undefined
      return { result: { kind: 'noOptions', refusals: refusalsOf(found, reason) }, helped: nobody }
    }
    if (this.#resizing.has(best.groupId))
      return { result: { kind: 'waiting', groupId: best.groupId }, helped: nobody }
    reporting.logger.info('best option to resize', {
      group: best.groupId,
      nodes: best.nodeCount,
      pods: best.pods.length,
    })
    const increases = increasesFor(best, found, { ...search, safetyOf })
    if (increases.isCappedByTotal)
      reporting.events.status(
        'Warning',
        'MaxNodesTotalReached',
        `Max total nodes in cluster reached: ${options.maxNodesTotal}. Current number of nodes: ${view.snapshot.nodes.length}`,
      )
    if (increases.groups.length === 0) {
      const message = increases.isCappedByTotal
        ? 'max node total count already reached'
        : 'the limits of the cluster leave no room for a node'
      return { result: { kind: 'failed', message, isTransient: true }, helped: nobody }
    }
    return await this.#carryOut(increases.groups, best, found, search, signal)
  }

  async #search(
    { view, pods, safetyOf }: ScaleUpQuestion,
    signal: AbortSignal,
  ): Promise<{ readonly found: Search; readonly search: SearchQuestion }> {
    const { options, reader, slicing } = this.#deps
    const monotonic = () => slicing.clock.monotonic()
    const quotas = await this.#quotasOf(view, signal)
    const search: SearchQuestion = { view, pods, options, safetyOf, quotas, reader, monotonic }
    const start = monotonic()
    const found = await inSlices(searchOptions(search), slicing)
    this.#measureSearch(found, monotonic() - start)
    this.#countSkipped(found)
    return { found, search }
  }

  #measureSearch({ groupingMs, valid }: Search, tookMs: number): void {
    const { metrics } = this.#deps.reporting
    const measure = (name: string, ms: number) => {
      metrics.observe('function_duration_seconds', ms / 1000, { function: name })
    }
    measure('scaleUp:buildPodEquivalenceGroups', groupingMs)
    measure('scaleUp:estimate', tookMs - groupingMs)
    for (const { template, takes } of valid.values()) {
      if (takes.size === 0) continue
      const { metadata, status } = template.node
      const namespaces = new Set([...takes].map(({ exemplar }) => exemplar.metadata.namespace)).size
      metrics.observe('binpacking_heterogeneity', takes.size, {
        instance_type: ownValue(metadata.labels, 'node.kubernetes.io/instance-type') ?? '',
        cpu_count: ownValue(status?.capacity, 'cpu') ?? '',
        namespace_count: namespaces > 10 ? '11+' : namespaces > 5 ? '6-10' : String(namespaces),
      })
    }
  }

  /** @returns the error, if any. */
  async #increase(
    increases: readonly GroupIncrease[],
    view: LoopView,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    return this.#deps.options.parallelScaleUp
      ? (await Promise.all(increases.map((each) => this.#execute(each, view, signal)))).find(isText)
      : await this.#oneByOne(increases, view, signal)
  }

  async #carryOut(
    increases: readonly GroupIncrease[],
    best: ExpansionOption,
    found: Search,
    search: SearchQuestion,
    signal: AbortSignal,
  ): Promise<{ readonly result: ScaleUpResult; readonly helped: ReadonlySet<Pod> }> {
    const { options, reporting, cloud } = this.#deps
    const failure = await this.#increase(increases, search.view, signal)
    if (failure !== undefined)
      return { result: { kind: 'failed', message: failure, isTransient: false }, helped: new Set() }
    if (cloud.isDryRun) {
      const groups = increases.map(sizeText).join(' ')
      reporting.logger.info('dry run: would scale up', { groups, pods: best.pods.length })
    } else {
      const grown = increases.map(({ group: { id, targetSize }, newSize }) => ({
        groupId: id,
        delta: newSize - targetSize,
      }))
      const { nodes, nowMs } = search.view
      const before = new Set(nodes.map(({ metadata }) => metadata.name))
      cloud.plans.add(plannedNodes(best.podsByNode, grown), before, nowMs)
    }
    const text = increases.map(sizeText).join(' ')
    const message = `pod triggered scale-up: [${text}]`
    for (const pod of best.pods) reporting.events.object(pod, 'Normal', 'TriggeredScaleUp', message)
    if (options.salvoScaleUp) addToSnapshot(increases, found, search)
    return { result: { kind: 'successful', pods: best.pods, groups: text }, helped: new Set(best.pods) }
  }

  async #oneByOne(
    increases: readonly GroupIncrease[],
    view: LoopView,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    for (const increase of increases) {
      const failure = await this.#execute(increase, view, signal)
      if (failure !== undefined) return failure
    }
    return undefined
  }

  /** @returns the error, if any. */
  async #execute(increase: GroupIncrease, view: LoopView, signal: AbortSignal): Promise<string | undefined> {
    const { cloud, reporting } = this.#deps
    const { group, newSize } = increase
    const delta = newSize - group.targetSize
    if (cloud.isDryRun) return undefined
    const from = `${newSize} instead of ${group.targetSize} (max: ${group.maxSize})`
    reporting.events.status('Normal', 'ScaledUpGroup', `Scale-up: setting group ${group.id} size to ${from}`)
    try {
      const { settled } = await cloud.nodeGroups.increaseSize(group.id, delta, signal)
      this.#resizing.add(group.id)
      void settled
        .then(
          () => this.#resizing.delete(group.id),
          async (error: unknown) => {
            this.#resizing.delete(group.id)
            if (signal.aborted) return
            this.#tellFailure(group, delta, error, view)
            // The registered nodes will not come, so they no longer count as upcoming.
            if (await this.#lacksQuota(delta, signal))
              cloud.registry.registerScaleUp(group.id, -delta, this.#nowMs())
            else this.#backOff(group, error)
          },
        )
        .catch(() => undefined)
    } catch (error) {
      signal.throwIfAborted()
      this.#tellFailure(group, delta, error, view)
      if (!(await this.#lacksQuota(delta, signal))) this.#backOff(group, error)
      return messageOf(error)
    }
    cloud.registry.registerScaleUp(group.id, delta, this.#nowMs())
    const labels = labelsOf(view, group.id)
    reporting.metrics.add('scaled_up_nodes_total', delta, { ...labels, dra_drivers: '' })
    if (labels.gpu_name !== '') reporting.metrics.add('scaled_up_gpu_nodes_total', delta, labels)
    reporting.events.status('Normal', 'ScaledUpGroup', `Scale-up: group ${group.id} size set to ${from}`)
    reporting.logger.info('scaled up', { group: group.id, name: group.name, size: newSize, delta })
    return undefined
  }

  /**
   * Whether the quota explains a refusal. Then there is no back-off: the next loop requests what the quota allows.
   */
  async #lacksQuota(delta: number, signal: AbortSignal): Promise<boolean> {
    const quota = await this.#deps.cloud.nodeGroups.instanceQuota?.(signal)
    return quota !== undefined && quota.limit - quota.used < delta
  }

  #backOff({ id }: NodeGroup, error: unknown): void {
    const failure = { code: cloudError, message: messageOf(error) }
    this.#deps.cloud.registry.registerFailedScaleUp(id, failure, this.#nowMs())
  }

  #tellFailure(group: NodeGroup, delta: number, error: unknown, view: LoopView): void {
    const { reporting } = this.#deps
    const message = messageOf(error)
    reporting.events.status(
      'Warning',
      'FailedToScaleUpGroup',
      `Scale-up failed for group ${group.id}: ${message}`,
    )
    reporting.logger.warn('failed to scale up', { group: group.id, name: group.name, delta, error: message })
    const labels = labelsOf(view, group.id)
    reporting.metrics.add('failed_scale_ups_total', 1, { reason: cloudError, ...labels, dra_drivers: '' })
    if (labels.gpu_name !== '')
      reporting.metrics.add('failed_gpu_scale_ups_total', 1, { reason: cloudError, ...labels })
    reporting.metrics.add('failed_node_creations_total', delta, { reason: cloudError })
  }

  #countSkipped({ skipped }: Search): void {
    for (const reason of skipped.values()) {
      if (reason.kind !== 'quota') continue
      for (const { name } of reason.exceeded.flatMap(({ resources }) => resources)) {
        const limit = limitReasons.get(name)
        if (limit === undefined) continue
        const labels = { direction: 'up', reason: limit }
        this.#deps.reporting.metrics.add('skipped_scale_events_count', 1, labels)
      }
    }
  }

  async #quotasOf(view: LoopView, signal: AbortSignal): Promise<QuotaTracker> {
    if (this.#ofLoop?.view === view) return this.#ofLoop.quotas
    const { cloud, options } = this.#deps
    const nodes = view.snapshot.nodes.flatMap(({ node }) => node ?? [])
    const account = await cloud.nodeGroups.instanceQuota?.(signal)
    const quotas = new QuotaTracker(options, nodes, account, cloud.nodeGroups.gpuLabel, view.quotas)
    this.#ofLoop = { view, quotas }
    return quotas
  }

  #nowMs(): number {
    return this.#deps.slicing.clock.now()
  }
}

function together(first: Successful, second: Successful): Successful {
  return {
    kind: 'successful',
    pods: [...first.pods, ...second.pods],
    groups: `${first.groups} ${second.groups}`,
  }
}

/** Message of `NotTriggerScaleUp`. */
export function notTriggeredText(refusals: string): string {
  return refusals === '' ? "pod didn't trigger scale-up" : `pod didn't trigger scale-up: ${refusals}`
}

/** @param isNotChosen whether some group would help but the expander chose none. */
function refusalOf(found: Search, isNotChosen: boolean): WholeResult {
  if (isNotChosen)
    return { kind: 'refused', message: renderSkipReason({ kind: 'notChosen' }).join(), pod: undefined }
  // A pod group that fits nowhere alone explains more than that no node group holds all.
  const alone = found.groups.find((group) => fitting(group, found).length === 0)
  if (alone !== undefined) {
    const text = renderRefusals(new Map(found.refusals.get(alone)))
    return { kind: 'refused', message: text === '' ? 'there is no node group' : text, pod: alone.exemplar }
  }
  const best = found.options.toSorted((a, b) => b.pods.length - a.pods.length)[0]
  const most =
    best === undefined ? '' : `; node group ${best.groupId} has room for ${best.pods.length} of them`
  return { kind: 'refused', message: `no node group alone has room for all of them${most}`, pod: undefined }
}

function refusalsOf(found: Search, ofFitting: SkipReason | undefined): ReadonlyMap<Pod, string> {
  const texts = new Map<Pod, string>()
  for (const group of found.groups) {
    const reasons = new Map(found.refusals.get(group))
    if (ofFitting !== undefined) for (const id of fitting(group, found)) reasons.set(id, ofFitting)
    const text = renderRefusals(reasons)
    for (const pod of group.pods) texts.set(pod, text)
  }
  return texts
}

function fitting(group: PodGroup, { valid }: Search): readonly string[] {
  return [...valid.values()].flatMap(({ group: { id }, takes }) => (takes.has(group) ? [id] : []))
}

function addToSnapshot(increases: readonly GroupIncrease[], found: Search, { view }: SearchQuestion): void {
  for (const { group, newSize } of increases) {
    const template = found.valid.get(group.id)?.template
    if (template === undefined) continue
    for (let index = group.targetSize; index < newSize; index++) {
      const { node, pods, ...parts } = nodeLike(template, `salvo-node-${index}-of-${group.id}`, true)
      view.snapshot.setNode(node, parts)
      for (const pod of pods) view.snapshot.assign(pod, node.metadata.name)
    }
  }
}

function sizeText({ group, newSize }: GroupIncrease): string {
  return `{${group.id} ${group.targetSize}->${newSize} (max: ${group.maxSize})}`
}

/** GPU labels of a node group, for counters. */
function labelsOf({ templates }: LoopView, groupId: string): GpuLabels {
  return gpuLabels(templates.get(groupId)?.node)
}

function isText(value: string | undefined): value is string {
  return value !== undefined
}

interface MinSizeQuestion {
  readonly index: NodeGroupIndex
  readonly templates: ReadonlyMap<string, NodeTemplate>
  readonly safetyOf: (groupId: string) => GroupSafety
  readonly quotas: QuotaTracker
  /** 0 = unlimited. */
  readonly maxNodesTotal: number
}

/** Increases of groups below their minimum: `--enforce-node-group-min-size` (cluster-autoscaler.md 4.8). */
function increasesToMinSize(question: MinSizeQuestion): readonly GroupIncrease[] {
  const { index, templates, safetyOf, quotas, maxNodesTotal } = question
  return [...index.groups.values()].flatMap((group): GroupIncrease[] => {
    if (group.targetSize >= group.minSize || index.faults.has(group.id)) return []
    if (safetyOf(group.id) !== 'safe' || index.holds.get(group.id)?.forbids === 'all') return []
    const template = templates.get(group.id)
    const wanted = Math.min(group.minSize, group.maxSize) - group.targetSize
    const inTotal = maxNodesTotal > 0 ? Math.min(wanted, maxNodesTotal - group.targetSize) : wanted
    const delta = quotas.most(template, inTotal)
    if (delta <= 0) return []
    quotas.take(template, delta)
    return [{ group, newSize: group.targetSize + delta }]
  })
}
