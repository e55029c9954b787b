/** The new node of each group, built from nodes that were seen (cluster-autoscaler.md 2.6). */
import type { CsiNode, DaemonSet, Node, Pod, ResourceSlice } from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import type { NodeExample } from '@tenon/provider'
import { annotations, templateNodeLabel } from '../names.ts'
import type { NodeGroupIndex, NodeTemplate } from '../model.ts'
import type { TemplateOptions } from '../options/options.ts'
import { isDaemonSetPod, isMirrorPod } from '../pods/pod-traits.ts'
import { isBeingDeleted, isNodeReady, readyOf } from '../registry/node-state.ts'
import { daemonPodOn } from './daemon-pods.ts'
import type { TaintRules } from './taint-rules.ts'

const hostname = 'kubernetes.io/hostname'
/** A node that changed more recently may still change. */
const settledMs = 60_000

/** Input of templates in one loop. */
export interface TemplateSources {
  readonly nowMs: number
  readonly nodes: readonly Node[]
  readonly index: NodeGroupIndex
  readonly podsOn: (nodeName: string) => readonly Pod[]
  readonly daemonSets: readonly DaemonSet[]
  /** Devices that are local to a node. */
  readonly slicesOf: (nodeName: string) => readonly ResourceSlice[]
  readonly csiNodeOf: (nodeName: string) => CsiNode | undefined
}

interface ExampleSources extends Pick<TemplateSources, 'podsOn' | 'daemonSets' | 'slicesOf'> {
  /** Whether to include DaemonSets that have no pod on the example. */
  readonly countsAll?: boolean
}

interface Kept {
  readonly template: NodeTemplate
  readonly sinceMs: number
}

/** Keeps the template of each group as long as the group exists. */
export class NodeTemplates {
  readonly #options: TemplateOptions
  readonly #rules: TaintRules
  readonly #reader: PodReader
  readonly #kept = new Map<string, Kept>()

  constructor(options: TemplateOptions, rules: TaintRules, reader: PodReader) {
    this.#options = options
    this.#rules = rules
    this.#reader = reader
  }

  /** By group id; absent for groups without a known node. */
  update(sources: TemplateSources): ReadonlyMap<string, NodeTemplate> {
    const { nowMs, nodes, index } = sources
    for (const [id, { sinceMs }] of this.#kept) {
      const isOld = nowMs - sinceMs > this.#options.nodeInfoCacheExpireTimeMs
      if (!index.groups.has(id) || isOld) this.#kept.delete(id)
    }
    const found = new Map<string, NodeTemplate>()
    for (const node of nodes) {
      const id = index.groupOf.get(node.metadata.name)
      if (id === undefined || found.has(id) || !isGood(node, nowMs)) continue
      const csiNode = sources.csiNodeOf(node.metadata.name)
      const template = { ...this.#templateOf(id, node, sources), ...(csiNode !== undefined && { csiNode }) }
      found.set(id, template)
      this.#kept.set(id, { template, sinceMs: nowMs })
    }
    for (const [id, { template }] of this.#kept) if (!found.has(id)) found.set(id, template)
    for (const node of nodes) {
      const id = index.groupOf.get(node.metadata.name)
      if (id !== undefined && !found.has(id)) found.set(id, this.#templateOf(id, node, sources))
    }
    return found
  }

  /**
   * For a group that never had a node, from the cloud's description: includes every DaemonSet that selects it.
   */
  ofExample(
    groupId: string,
    { node, csiNode, resourceSlices = [] }: NodeExample,
    daemonSets: readonly DaemonSet[],
  ): NodeTemplate {
    const sources = { podsOn: () => [], daemonSets, slicesOf: () => resourceSlices, countsAll: true }
    const template = this.#templateOf(groupId, node, sources)
    return csiNode === undefined ? template : { ...template, csiNode }
  }

  #templateOf(groupId: string, example: Node, sources: ExampleSources): NodeTemplate {
    const { podsOn, daemonSets, countsAll = this.#options.forceDaemonSets } = sources
    const { scaleFromUnschedulable } = this.#options
    const name = `template-node-for-${groupId}`
    const { unschedulable, taints, ...spec } = example.spec ?? {}
    const node: Node = {
      ...example,
      metadata: {
        ...example.metadata,
        name,
        uid: name,
        labels: { ...example.metadata.labels, [hostname]: name, [templateNodeLabel]: 'true' },
      },
      spec: {
        ...spec,
        ...(unschedulable === true && !scaleFromUnschedulable && { unschedulable }),
        taints: this.#rules.ofNewNode(taints),
      },
    }
    const running = podsOn(example.metadata.name).filter(
      (pod) => pod.metadata.deletionTimestamp === undefined && (isMirrorPod(pod) || isDaemonSetPod(pod)),
    )
    const controllers = new Set(
      running.flatMap((pod) => pod.metadata.ownerReferences?.map(({ uid }) => uid) ?? []),
    )
    const missing = daemonSets.filter(
      (each) => !controllers.has(each.metadata.uid ?? '') && (countsAll || isCritical(each)),
    )
    const pods = [...running, ...missing.flatMap((each) => daemonPodOn(each, node, this.#reader) ?? [])].map(
      (pod) => copyOf(pod, name),
    )
    const resourceSlices = sources.slicesOf(example.metadata.name)
    return { node, pods, ...(resourceSlices.length > 0 && { resourceSlices }) }
  }
}

/** A copy of the template with its own name. */
export function nodeLike(template: NodeTemplate, name: string, isUpcoming: boolean): NodeTemplate {
  const { node, pods, csiNode, resourceSlices } = template
  return {
    node: {
      ...node,
      metadata: {
        ...node.metadata,
        name,
        uid: name,
        labels: { ...node.metadata.labels, [hostname]: name },
        ...(isUpcoming && {
          annotations: { ...node.metadata.annotations, [annotations.upcomingNode]: 'true' },
        }),
      },
    },
    pods: pods.map((pod) => copyOf(pod, name)),
    ...(csiNode !== undefined && { csiNode: { ...csiNode, metadata: { ...csiNode.metadata, name } } }),
    ...(resourceSlices !== undefined && {
      resourceSlices: resourceSlices.map((slice) => sliceOn(slice, name)),
    }),
  }
}

/** A copy of the slice in a pool of its own. */
function sliceOn(slice: ResourceSlice, nodeName: string): ResourceSlice {
  const { metadata, spec } = slice
  const own = (name: string) => `${name}-on-${nodeName}`
  return {
    ...slice,
    metadata: { ...metadata, name: own(metadata.name) },
    spec: { ...spec, nodeName, pool: { ...spec.pool, name: own(spec.pool.name) } },
  }
}

function copyOf(pod: Pod, nodeName: string): Pod {
  const name = `${pod.metadata.name}-on-${nodeName}`
  return { ...pod, metadata: { ...pod.metadata, name, uid: name }, spec: { ...pod.spec, nodeName } }
}

function isCritical({ spec }: DaemonSet): boolean {
  const { priorityClassName, preemptionPolicy = 'PreemptLowerPriority' } = spec.template.spec
  return priorityClassName === 'system-node-critical' && preemptionPolicy === 'PreemptLowerPriority'
}

function isGood(node: Node, nowMs: number): boolean {
  const changed = readyOf(node)?.lastTransitionTime
  const isSettled = changed === undefined || nowMs - Date.parse(changed) > settledMs
  return isNodeReady(node) && isSettled && node.spec?.unschedulable !== true && !isBeingDeleted(node)
}
