/** Placeholder pods of CapacityBuffers, and the nodes on which the last pass kept room for them. */
import { annotations, type Container, type Pod, type PodSpec, type PodTemplateSpec } from '@tenon/api'
import { Listeners } from '@tenon/runtime'
import { isSameValue } from '../same-value.ts'

/** One buffer. Plain data that can be stored as JSON. */
export interface BufferSource {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly replicas: number
  readonly template: PodTemplateSpec
  /** RFC 3339. */
  readonly builtAt: string
}

/** Placeholder pods of a buffer with room on an instance. */
export interface KeptRoom {
  /** `namespace/name` of the CapacityBuffer. */
  readonly buffer: string
  readonly pods: readonly Pod[]
}

/** Limit of pods for one buffer, as every pass decides about all of them. */
export const mostBufferPods = 10_000
/** Only informative: real pods come first whatever their priority. */
const leastPriority = -2_147_483_648

interface Buffered {
  readonly source: BufferSource
  readonly pods: readonly Pod[]
}

export class BufferPods {
  readonly #buffers = new Map<string, Buffered>()
  #all: readonly Pod[] | undefined
  /** Provider ID of the instance with room, by UID of the pod. */
  #hosts: ReadonlyMap<string, string> = new Map()
  /** By provider ID. */
  #rooms: ReadonlyMap<string, readonly KeptRoom[]> = new Map()
  /** UIDs of the pods of the last pass. */
  #decided: ReadonlySet<string> = new Set()
  /** Whether the buffers of earlier processes are restored. */
  #isKnown = false
  #lastPassMs = Number.NEGATIVE_INFINITY
  /** Names of NodeClaims that were created for buffers since the last pass. */
  readonly #launched = new Set<string>()
  /** Requests for a scheduling pass, by UID of the buffer. */
  readonly asked: Listeners<string> = new Listeners()

  /** Adds or replaces a buffer; pods of an unchanged one keep their identity. */
  put(source: BufferSource): void {
    const key = `${source.namespace}/${source.name}`
    const known = this.#buffers.get(key)
    if (known !== undefined && isSameBuffer(known.source, source)) return
    this.#buffers.set(key, { source, pods: bufferPodsOf(source) })
    this.#all = undefined
  }

  /**
   * @param key `namespace/name`.
   * @returns whether the buffer was known.
   */
  drop(key: string): boolean {
    this.#all = undefined
    return this.#buffers.delete(key)
  }

  /** @param key `namespace/name`. */
  of(key: string): readonly Pod[] {
    return this.#buffers.get(key)?.pods ?? []
  }

  /** Shared: never change the list. */
  all(): readonly Pod[] {
    return (this.#all ??= [...this.#buffers.values()].flatMap(({ pods }) => pods))
  }

  sources(): readonly BufferSource[] {
    return [...this.#buffers.values()].map(({ source }) => source)
  }

  /** The buffers of earlier processes are restored. */
  known(): void {
    this.#isKnown = true
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  ask(uid: string): void {
    this.asked.notify(uid)
  }

  /** A NodeClaim was created for a buffer; the next pass will place its pods there. */
  launched(claim: string): void {
    this.#launched.add(claim)
    this.asked.notify(`room on ${claim}`)
  }

  /** Whether the NodeClaim was created for a buffer since the last pass. */
  isAwaited(claim: string): boolean {
    return this.#launched.has(claim)
  }

  /** Whether there are placeholder pods that no pass has decided about. */
  get isUndecided(): boolean {
    return !this.#isKnown || this.all().some(({ metadata }) => !this.#decided.has(metadata.uid ?? ''))
  }

  /** Monotonic milliseconds. */
  get lastPassMs(): number {
    return this.#lastPassMs
  }

  /**
   * Stores the result of a pass.
   * @param about its placeholder pods.
   * @param hosts provider ID of the existing instance with room, by UID of the pod.
   * @returns whether room has moved.
   */
  decided(about: readonly Pod[], hosts: ReadonlyMap<string, string>, nowMs: number): boolean {
    const before = this.#rooms
    const rooms = new Map<string, Map<string, Pod[]>>()
    for (const pod of about) {
      const host = hosts.get(pod.metadata.uid ?? '')
      if (host === undefined) continue
      const room = rooms.get(host) ?? new Map<string, Pod[]>()
      rooms.set(host, room)
      const buffer = bufferOf(pod)
      const pods = room.get(buffer) ?? []
      room.set(buffer, pods)
      pods.push(pod)
    }
    this.#decided = new Set(about.map(({ metadata }) => metadata.uid ?? ''))
    this.#hosts = hosts
    this.#rooms = new Map(
      Array.from(rooms, ([host, room]) => [host, Array.from(room, ([buffer, pods]) => ({ buffer, pods }))]),
    )
    this.#lastPassMs = nowMs
    this.#launched.clear()
    return !isSameCount(before, this.#rooms)
  }

  keptOn(providerID: string): readonly KeptRoom[] {
    return this.#rooms.get(providerID) ?? []
  }

  /** By provider ID of the instance. */
  kept(): ReadonlyMap<string, readonly KeptRoom[]> {
    return this.#rooms
  }

  /** Provider ID of the instance with room, by UID of the pod. */
  hosts(): ReadonlyMap<string, string> {
    return this.#hosts
  }
}

/** Whether the pod is a placeholder that exists only in this process. */
export function isBufferPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[annotations.bufferPod] === 'true'
}

/** `namespace/name` of the CapacityBuffer of a placeholder pod. */
export function bufferOf({ metadata }: Pod): string {
  const of = metadata.annotations ?? {}
  return `${of[annotations.bufferNamespace] ?? ''}/${of[annotations.bufferName] ?? ''}`
}

/** Placeholder pods of a buffer, with stable UIDs (buffers-and-dra.md 2.4). */
export function bufferPodsOf(source: BufferSource): readonly Pod[] {
  const { namespace, name, uid, replicas, template, builtAt } = source
  const spec = placeableSpec(template.spec)
  const labels = template.metadata?.labels
  const notes = {
    [annotations.bufferPod]: 'true',
    [annotations.bufferName]: name,
    [annotations.bufferNamespace]: namespace,
  }
  const status: Pod['status'] = {
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
  }
  const count = Math.max(0, Math.min(replicas, mostBufferPods))
  return Array.from({ length: count }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `capacity-buffer-${name}-${at + 1}`,
      namespace,
      uid: `${uid}-${at + 1}`,
      creationTimestamp: builtAt,
      ...(labels && { labels }),
      annotations: notes,
    },
    spec,
    status,
  }))
}

/** Removes what belongs to single pods: node, and volumes with claims and their mounts. */
function placeableSpec(given: PodSpec): PodSpec {
  const { nodeName: _, volumes = [], ...spec } = given
  const isOwn = (volume: (typeof volumes)[number]) =>
    volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined
  const removed = new Set(volumes.filter(isOwn).map(({ name }) => name))
  const kept = volumes.filter((volume) => !isOwn(volume))
  const unmounted = (containers: PodSpec['containers']) =>
    removed.size === 0 ? containers : containers.map((container) => withoutMounts(container, removed))
  return {
    ...spec,
    containers: unmounted(spec.containers),
    ...(spec.initContainers && { initContainers: unmounted(spec.initContainers) }),
    ...(kept.length > 0 && { volumes: kept }),
    priority: leastPriority,
  }
}

function withoutMounts(container: Container, removed: ReadonlySet<string>): Container {
  const { volumeMounts } = container
  if (volumeMounts === undefined) return container
  return { ...container, volumeMounts: volumeMounts.filter(({ name }) => !removed.has(name)) }
}

function isSameBuffer(a: BufferSource, b: BufferSource): boolean {
  return a.uid === b.uid && a.replicas === b.replicas && isSameValue(a.template, b.template)
}

type Rooms = ReadonlyMap<string, readonly KeptRoom[]>

/** Whether both have the same number of pods for each instance and buffer. */
function isSameCount(a: Rooms, b: Rooms): boolean {
  const texts = (rooms: Rooms) =>
    Array.from(rooms, ([host, room]) =>
      room.map(({ buffer, pods }) => `${host} ${buffer} ${pods.length}`),
    ).flat()
  const [before, after] = [new Set(texts(a)), texts(b)]
  return before.size === after.length && after.every((text) => before.has(text))
}
