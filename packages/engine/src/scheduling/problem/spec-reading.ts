/** Reads from each pod, once, what decides where it may go: nearly all pods of the next problem are the same objects. */
import {
  labels,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  ownValue,
  type Pod,
  type PodSpec,
  type PodStatus,
  requiredFeatures,
} from '@tenon/api'
import { hostPortOf } from '../../input/host-ports.ts'
import { problemText } from '../../input/problem-text.ts'
import type { NodeInput, TopologyNode } from '../../input/input.ts'

type Held = NonNullable<PodStatus['containerStatuses']>[number]

/** The cache of read pods, kept from one problem to the next. */
export type SpecCache = PodCache<SpecReading>

export function knownSpecs(): SpecCache {
  return new PodCache(specReading)
}

/** The parts of a pod that take time to read; invalid pods are read too. */
export interface SpecReading {
  /** Equal for specs that allow a pod the same nodes. */
  readonly key: string | Unreadable
  /** As {@link resized}. */
  readonly status: PodStatus | Unreadable | undefined
}

interface Unreadable {
  readonly problem: string
}

function specReading(pod: Pod): SpecReading {
  return { key: attempted(() => specKey(pod.spec)), status: attempted(() => resized(pod)) }
}

function attempted<T>(read: () => T): T | Unreadable {
  try {
    return read()
  } catch (error) {
    return { problem: problemText(error) }
  }
}

/** JSON of immutable parts of specs, which pods of one workload often share. */
const texts = new WeakMap<object, string>()

/** The JSON of a part, built once; of invalid pods a part may have any type. */
export function textOf(part: unknown): string {
  if (part === undefined) return ''
  if (typeof part !== 'object' || part === null) return JSON.stringify(part)
  let text = texts.get(part)
  if (text === undefined) {
    text = JSON.stringify(part)
    texts.set(part, text)
  }
  return text
}

/** The parts of a spec that decide where a pod goes, as text. */
function specKey(spec: PodSpec): string {
  // Every pod has its own containers; caching their JSON would take tens of milliseconds when the table grows.
  let key = Array.isArray(spec.containers) ? containersKey(spec) : textOf(spec.containers)
  for (const container of spec.initContainers ?? [])
    key += `i${container.restartPolicy}${containerKey(container, spec)}`
  const rest = [
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    spec.overhead,
    spec.resources?.requests,
    spec.resourceClaims,
  ]
  const features = requiredFeatures(spec)
  if (features.length > 0) key += `\n${features.join()}`
  for (const part of rest) key += `\n${textOf(part)}`
  return key
}

function containersKey(spec: PodSpec): string {
  let key = ''
  for (const container of spec.containers) key += containerKey(container, spec)
  return key
}

function containerKey({ resources, ports }: PodSpec['containers'][number], spec: PodSpec): string {
  let key = '|'
  const requests = resources?.requests
  for (const name in requests) key += `${name}=${String(ownValue(requests, name))},`
  for (const port of ports ?? []) {
    const number = hostPortOf(port, spec)
    if (number !== 0) key += `:${number}/${port.hostIP}/${port.protocol}`
  }
  return key
}

/**
 * The relevant part of the status, if some container holds other resources than it requests, as during an in-place resize.
 * The rest of the status is left out, as it differs between pods.
 */
function resized({ spec, status }: Pod): PodStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [], conditions = [] } = status ?? {}
  const { resources, allocatedResources } = status ?? {}
  const isDifferent =
    holdsOther(spec.resources, status ?? {}) ||
    containerStatuses.some((each) => holdsOther(resourcesOf(spec.containers, each), each)) ||
    initContainerStatuses.some((each) => holdsOther(resourcesOf(spec.initContainers ?? [], each), each))
  if (!isDifferent) return undefined
  return {
    conditions: conditions
      .filter(({ type }) => type === 'PodResizePending')
      .map(({ type, status: value, reason = '' }) => ({ type, status: value, reason })),
    containerStatuses: containerStatuses.map(held),
    initContainerStatuses: initContainerStatuses.map(held),
    ...(resources !== undefined && { resources: { requests: resources.requests ?? {} } }),
    ...(allocatedResources !== undefined && { allocatedResources }),
  }
}

const resourcesOf = (containers: PodSpec['containers'], { name }: Held) =>
  containers.find((each) => each.name === name)?.resources

function holdsOther(
  spec: PodSpec['resources'],
  { resources, allocatedResources }: Pick<Held, 'resources' | 'allocatedResources'>,
): boolean {
  if (resources === undefined) return false
  const asked = spec?.requests
  const isAsked = (amounts: Held['allocatedResources']) =>
    Object.entries(amounts ?? {}).every(([key, amount]) => String(ownValue(asked, key)) === amount)
  return !isAsked(resources.requests) || !isAsked(allocatedResources)
}

function held({ name, resources, allocatedResources }: Held): Held {
  return {
    name,
    ...(resources !== undefined && { resources: { requests: resources.requests ?? {} } }),
    ...(allocatedResources !== undefined && { allocatedResources }),
  }
}

/** Pods that are skipped in the previous list when the next pod is not at its position. */
const mostSkipped = 256

/**
 * Reads each pod once; pods are immutable. A lookup by object would cost more than reading most pods. So this relies on the
 * order: a pod is the next one of the previous list, or one soon after it.
 */
export class PodCache<Value> {
  readonly #read: (pod: Pod) => Value
  #pods: readonly Pod[] = []
  #values: readonly Value[] = []

  constructor(read: (pod: Pod) => Value) {
    this.#read = read
  }

  /** @returns a function that reads the pods of one list in their order. */
  reading(): (pod: Pod) => Value {
    const [before, known] = [this.#pods, this.#values]
    const pods: Pod[] = []
    const values: Value[] = []
    this.#pods = pods
    this.#values = values
    let next = 0
    return (pod) => {
      const end = Math.min(before.length, next + mostSkipped)
      let at = next
      while (at < end && before[at] !== pod) at++
      const isKnown = at < end
      if (isKnown) next = at + 1
      const value = isKnown ? (known[at] as Value) : this.#read(pod)
      pods.push(pod)
      values.push(value)
      return value
    }
  }
}

/** The host name of a node, by its name. */
export type HostNames = (node: string) => string

/** An unknown node name gives a host name that no node has. */
export function hostNames(
  nodes: readonly NodeInput[],
  topologyNodes: ReadonlyMap<string, TopologyNode>,
): HostNames {
  let hosts: ReadonlyMap<string, string> | undefined
  return (node) => {
    hosts ??= new Map(nodes.map(({ name, labels: own }) => [name, own[labels.hostname] ?? name]))
    return topologyNodes.get(node)?.hostname ?? hosts.get(node) ?? `no node ${node}`
  }
}

/**
 * The spec with host names instead of the node names of `matchFields` (reports-2.md 8); the same object if it names no
 * node.
 */
export function withHostNames(spec: PodSpec, hostOf: HostNames): PodSpec {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution
  const terms = [...(required?.nodeSelectorTerms ?? []), ...(preferred ?? []).map((each) => each.preference)]
  if (!terms.some(({ matchFields = [] }) => matchFields.length > 0)) return spec
  return {
    ...spec,
    affinity: {
      ...spec.affinity,
      nodeAffinity: {
        ...nodeAffinity,
        ...(required !== undefined && {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: required.nodeSelectorTerms.map((term) => termOf(term, hostOf)),
          },
        }),
        ...(preferred !== undefined && {
          preferredDuringSchedulingIgnoredDuringExecution: preferred.map((each) => ({
            ...each,
            preference: termOf(each.preference, hostOf),
          })),
        }),
      },
    },
  }
}

function termOf({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, hostOf: HostNames) {
  const hosts = matchFields.map((field): NodeSelectorRequirement => {
    return { ...field, key: labels.hostname, values: (field.values ?? []).map(hostOf) }
  })
  return { matchExpressions: [...matchExpressions, ...hosts] }
}
