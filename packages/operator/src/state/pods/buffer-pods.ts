/** The room that CapacityBuffers keep: the pods that stand for it, and where the last pass put them. */
import { annotations, type Container, type Pod, type PodSpec, type PodTemplateSpec } from '@tenon/api'
import { Listeners } from '@tenon/runtime'
import { isSameValue } from '../same-value.ts'

/** What the pods of one buffer are made from. Plain data: it survives a way through JSON. */
export interface BufferSource {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly replicas: number
  readonly template: PodTemplateSpec
  /** When it was made; RFC 3339. */
  readonly builtAt: string
}

/** The pods of a buffer that have room on an instance. */
export interface KeptRoom {
  /** `namespace/name` of the CapacityBuffer. */
  readonly buffer: string
  readonly pods: readonly Pod[]
}

/** Far more than a buffer is for: each pod is decided about in every pass. */
export const mostBufferPods = 10_000
/** Real pods come first whatever their priority; it tells people who see such a pod what it is. */
const leastPriority = -2_147_483_648

interface Buffered {
  readonly source: BufferSource
  readonly pods: readonly Pod[]
}

export class BufferPods {
  readonly #buffers = new Map<string, Buffered>()
  #all: readonly Pod[] | undefined
  /** By UID of a pod, the provider ID of the instance that has room for it. */
  #hosts: ReadonlyMap<string, string> = new Map()
  /** By provider ID. */
  #rooms: ReadonlyMap<string, readonly KeptRoom[]> = new Map()
  /** UIDs of the pods that the last pass was about. */
  #decided: ReadonlySet<string> = new Set()
  /** Whether what earlier processes kept is known. */
  #isKnown = false
  #lastPassMs = Number.NEGATIVE_INFINITY
  /** Names of the NodeClaims that were created for room since the last pass. */
  readonly #launched = new Set<string>()
  /** UIDs of buffers for which another pass is wanted. */
  readonly asked: Listeners<string> = new Listeners()

  /** Puts a buffer in place of what it was; the pods of one that is the same stay the same objects. */
  put(source: BufferSource): void {
    const key = `${source.namespace}/${source.name}`
    const known = this.#buffers.get(key)
    if (known !== undefined && isSameBuffer(known.source, source)) return
    this.#buffers.set(key, { source, pods: bufferPodsOf(source) })
    this.#all = undefined
  }

  /**
   * @param key `namespace/name`.
   * @returns whether there was anything of it.
   */
  drop(key: string): boolean {
    this.#all = undefined
    return this.#buffers.delete(key)
  }

  /** @param key `namespace/name`. */
  of(key: string): readonly Pod[] {
    return this.#buffers.get(key)?.pods ?? []
  }

  /** Of all buffers, shared: never change them. */
  all(): readonly Pod[] {
    return (this.#all ??= [...this.#buffers.values()].flatMap(({ pods }) => pods))
  }

  sources(): readonly BufferSource[] {
    return [...this.#buffers.values()].map(({ source }) => source)
  }

  /** What earlier processes kept room for is known from now on. */
  known(): void {
    this.#isKnown = true
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Asks for a scheduling pass. */
  ask(uid: string): void {
    this.asked.notify(uid)
  }

  /** A NodeClaim was created for room: the next pass will find that on it. */
  launched(claim: string): void {
    this.#launched.add(claim)
    this.asked.notify(`room on ${claim}`)
  }

  /** Whether the NodeClaim was created for room that no pass has found on it yet. */
  isAwaited(claim: string): boolean {
    return this.#launched.has(claim)
  }

  /** Whether there are pods of buffers of which no pass has said yet where there is room for them. */
  get isUndecided(): boolean {
    return !this.#isKnown || this.all().some(({ metadata }) => !this.#decided.has(metadata.uid ?? ''))
  }

  /** When a pass last decided about buffers; monotonic milliseconds. */
  get lastPassMs(): number {
    return this.#lastPassMs
  }

  /**
   * A pass has ended.
   * @param about the pods that it was about.
   * @param hosts by UID of a pod, the provider ID of the instance that is there with room for it.
   * @returns whether room is kept elsewhere than before.
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

  /** What is kept on an instance. */
  keptOn(providerID: string): readonly KeptRoom[] {
    return this.#rooms.get(providerID) ?? []
  }

  /** By provider ID of the instance. */
  kept(): ReadonlyMap<string, readonly KeptRoom[]> {
    return this.#rooms
  }

  /** By UID of a pod, the provider ID of the instance that has room for it. */
  hosts(): ReadonlyMap<string, string> {
    return this.#hosts
  }
}

/** Whether the pod only stands for room, and no API server knows it. */
export function isBufferPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[annotations.bufferPod] === 'true'
}

/** `namespace/name` of the CapacityBuffer that a pod stands for. */
export function bufferOf({ metadata }: Pod): string {
  const of = metadata.annotations ?? {}
  return `${of[annotations.bufferNamespace] ?? ''}/${of[annotations.bufferName] ?? ''}`
}

/** Pods that look as those of the buffer would, and always have the same UIDs (buffers-and-dra.md 2.4). */
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

/** A template's spec without what belongs to single pods: their node, and their volumes with the mounts. */
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

/** Whether each instance has room for as many pods of each buffer. */
function isSameCount(a: Rooms, b: Rooms): boolean {
  const texts = (rooms: Rooms) =>
    Array.from(rooms, ([host, room]) =>
      room.map(({ buffer, pods }) => `${host} ${buffer} ${pods.length}`),
    ).flat()
  const [before, after] = [new Set(texts(a)), texts(b)]
  return before.size === after.length && after.every((text) => before.has(text))
}
