/** The state of a recording after its last record. */
import type { TraceRecord } from './records.ts'

/** Existing pods and nodes, and the numbers in use. */
export interface TraceState {
  /** Time of the last record, in Unix milliseconds; 0 if there is none. */
  readonly atMs: number
  /** Numbers of live pods, by digest of the UID. */
  readonly pods: ReadonlyMap<string, number>
  readonly nodes: ReadonlyMap<string, { readonly id: string }>
  readonly nextPod: number
  readonly nextShape: number
}

export function emptyTraceState(): TraceState {
  return { atMs: 0, pods: new Map(), nodes: new Map(), nextPod: 0, nextShape: 0 }
}

/** Applies records one by one. */
export class TraceStateReader {
  readonly #idByPod = new Map<number, string>()
  readonly #nodes = new Map<string, { readonly id: string }>()
  #atMs = 0
  #nextPod = 0
  #nextShape = 0

  take(record: TraceRecord): void {
    // Pods and nodes have their creation time, which may be long before.
    if (record.kind !== 'shape') this.#atMs = Math.max(this.#atMs, record.atMs)
    switch (record.kind) {
      case 'shape':
        this.#nextShape = Math.max(this.#nextShape, record.shape + 1)
        return
      case 'podCame':
        this.#idByPod.set(record.pod, record.id)
        this.#nextPod = Math.max(this.#nextPod, record.pod + 1)
        return
      case 'podMoved':
        this.#idByPod.set(record.pod, record.id)
        return
      case 'podEnded':
        this.#idByPod.delete(record.pod)
        return
      case 'nodeCame':
        this.#nodes.set(record.node, { id: record.id })
        return
      case 'nodeGone':
        this.#nodes.delete(record.node)
        return
      case 'session':
      case 'object':
      case 'objectGone':
      case 'catalogue':
      case 'gap':
      case 'alive':
    }
  }

  state(): TraceState {
    return {
      atMs: this.#atMs,
      pods: new Map(Array.from(this.#idByPod, ([pod, id]) => [id, pod])),
      nodes: new Map(this.#nodes),
      nextPod: this.#nextPod,
      nextShape: this.#nextShape,
    }
  }
}

export function traceStateAfter(records: Iterable<TraceRecord>): TraceState {
  const reader = new TraceStateReader()
  for (const record of records) reader.take(record)
  return reader.state()
}
