/** Records pods by workload: an evicted pod and its replacement are the same pod. */
import { controllerOf, type Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import { digestOf, shapeOf } from './shapes.ts'
import type { TraceSink } from './trace-file.ts'
import type { TraceState } from './trace-state.ts'

/** Controllers replace evicted pods faster than this. */
const replacedWithinMs = 60_000
/** Bounds memory: older shapes get another number if they return. */
const mostShapes = 2_000

/** An evicted pod without a replacement so far. */
interface Evicted {
  readonly pod: number
  readonly atMs: number
}

export class PodLog {
  readonly #sink: TraceSink
  readonly #clock: Pick<Clock, 'now'>
  /** Numbers of live pods, by digest of the UID. */
  readonly #live: Map<string, number>
  /** Terminating pods that were already recorded. */
  readonly #leaving = new Set<string>()
  readonly #evicted = new Map<string, Evicted[]>()
  readonly #shapes = new Map<string, number>()
  #nextPod: number
  #nextShape: number

  constructor(sink: TraceSink, clock: Pick<Clock, 'now'>, state: TraceState) {
    this.#sink = sink
    this.#clock = clock
    this.#live = new Map(state.pods)
    this.#nextPod = state.nextPod
    this.#nextShape = state.nextShape
  }

  /** Starts a session. Pods of the previous session that no longer exist have ended. */
  begin(present: readonly Pod[]): void {
    const now = this.#clock.now()
    const ids = new Set(present.map(({ metadata }) => digestOf(metadata.uid ?? '')))
    for (const [id, pod] of this.#live) {
      if (ids.has(id)) continue
      this.#live.delete(id)
      this.#sink.write({ kind: 'podEnded', atMs: now, pod })
    }
    for (const pod of present) this.#came(pod, true)
  }

  /** A pod was added or updated. */
  seen(pod: Pod): void {
    const id = digestOf(pod.metadata.uid ?? '')
    if (this.#leaving.has(id)) return
    if (pod.metadata.deletionTimestamp !== undefined) this.#leave(pod, id)
    else if (!this.#live.has(id)) this.#came(pod, false)
  }

  /** A pod was deleted, or has completed. */
  gone(pod: Pod): void {
    const id = digestOf(pod.metadata.uid ?? '')
    if (!this.#leaving.delete(id)) this.#leave(pod, id)
    this.#leaving.delete(id)
  }

  /** Evicted pods that were not replaced in time have ended. */
  settle(nowMs: number): void {
    for (const [owner, waiting] of this.#evicted) {
      const rest = waiting.filter(({ atMs, pod }) => {
        const isLate = nowMs - atMs >= replacedWithinMs
        if (isLate) this.#sink.write({ kind: 'podEnded', atMs, pod })
        return !isLate
      })
      if (rest.length === 0) this.#evicted.delete(owner)
      else this.#evicted.set(owner, rest)
    }
  }

  #leave(pod: Pod, id: string): void {
    const number = this.#live.get(id)
    if (number === undefined) return
    this.#live.delete(id)
    this.#leaving.add(id)
    const atMs = this.#clock.now()
    const owner = controllerOf(pod)?.uid
    const isEvicted = pod.status?.conditions?.some(({ type }) => type === 'DisruptionTarget') === true
    if (owner === undefined || !isEvicted) {
      this.#sink.write({ kind: 'podEnded', atMs, pod: number })
      return
    }
    const waiting = this.#evicted.get(owner) ?? []
    this.#evicted.set(owner, [...waiting, { pod: number, atMs }])
  }

  #came(pod: Pod, isOld: boolean): void {
    const { uid = '', name, creationTimestamp = '' } = pod.metadata
    const id = digestOf(uid)
    if (this.#live.has(id) || isOfNode(pod)) return
    const createdMs = Date.parse(creationTimestamp)
    const atMs = Number.isNaN(createdMs) ? this.#clock.now() : createdMs
    const moved = this.#takeEvicted(pod)
    if (moved !== undefined) {
      this.#live.set(id, moved)
      this.#sink.write({ kind: 'podMoved', atMs, pod: moved, id })
      return
    }
    const shape = this.#shapeNumber(pod)
    const number = this.#nextPod++
    this.#live.set(id, number)
    const { nodeName } = pod.spec
    this.#sink.write({
      kind: 'podCame',
      atMs,
      pod: number,
      shape,
      name,
      id,
      ...(isOld && nodeName !== undefined && { node: nodeName }),
    })
  }

  #takeEvicted(pod: Pod): number | undefined {
    const owner = controllerOf(pod)?.uid
    const waiting = owner === undefined ? undefined : this.#evicted.get(owner)
    const first = waiting?.shift()
    if (owner !== undefined && waiting?.length === 0) this.#evicted.delete(owner)
    return first?.pod
  }

  #shapeNumber(pod: Pod): number {
    const shape = shapeOf(pod)
    const key = JSON.stringify(shape)
    const known = this.#shapes.get(key)
    if (known !== undefined) return known
    if (this.#shapes.size >= mostShapes) this.#shapes.delete(this.#shapes.keys().next().value ?? '')
    const number = this.#nextShape++
    this.#shapes.set(key, number)
    this.#sink.write({ kind: 'shape', shape: number, pod: shape })
    return number
  }
}

/** Pods of DaemonSets and static pods come and go with their nodes. */
function isOfNode(pod: Pod): boolean {
  const kind = controllerOf(pod)?.kind
  return kind === 'DaemonSet' || kind === 'Node'
}
