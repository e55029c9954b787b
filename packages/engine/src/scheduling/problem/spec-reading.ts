/** Reads from each pod, once, what decides where it may go: nearly all pods of the next problem are the same objects. */
import { ownValue, type Pod, type PodSpec, type PodStatus } from '@tenon/api'
import { hostPortOf } from '../../input/host-ports.ts'
import { PodCache } from './pod-cache.ts'
import { problemText } from '../../input/problem-text.ts'

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
  const isDifferent =
    containerStatuses.some((each) => holdsOther(spec.containers, each)) ||
    initContainerStatuses.some((each) => holdsOther(spec.initContainers ?? [], each))
  if (!isDifferent) return undefined
  return {
    conditions: conditions
      .filter(({ type }) => type === 'PodResizePending')
      .map(({ type, status: value, reason = '' }) => ({ type, status: value, reason })),
    containerStatuses: containerStatuses.map(held),
    initContainerStatuses: initContainerStatuses.map(held),
  }
}

function holdsOther(
  containers: PodSpec['containers'],
  { name, resources, allocatedResources }: Held,
): boolean {
  if (resources === undefined) return false
  const asked = containers.find((each) => each.name === name)?.resources?.requests
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
