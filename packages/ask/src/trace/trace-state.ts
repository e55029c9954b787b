/** Where a recording stands after its last record. */
import type { TraceRecord } from './records.ts'

/** Pods and nodes that are there, and the numbers that are taken. */
export interface TraceState {
  /** Of the last record, in Unix milliseconds; 0 when there is none. */
  readonly atMs: number
  /** Live pods: number by digest of the uid. */
  readonly pods: ReadonlyMap<string, number>
  readonly nodes: ReadonlyMap<string, { readonly id: string }>
  readonly nextPod: number
  readonly nextShape: number
}

export function emptyTraceState(): TraceState {
  return { atMs: 0, pods: new Map(), nodes: new Map(), nextPod: 0, nextShape: 0 }
}

/** The state after all records. */
export function traceStateAfter(records: Iterable<TraceRecord>): TraceState {
  const idByPod = new Map<number, string>()
  const nodes = new Map<string, { readonly id: string }>()
  let [atMs, nextPod, nextShape] = [0, 0, 0]
  for (const record of records) {
    // Pods and nodes tell when they were created, which may be long before.
    if (record.kind !== 'shape') atMs = Math.max(atMs, record.atMs)
    if (record.kind === 'shape') nextShape = Math.max(nextShape, record.shape + 1)
    else if (record.kind === 'podCame') {
      idByPod.set(record.pod, record.id)
      nextPod = Math.max(nextPod, record.pod + 1)
    } else if (record.kind === 'podMoved') idByPod.set(record.pod, record.id)
    else if (record.kind === 'podEnded') idByPod.delete(record.pod)
    else if (record.kind === 'nodeCame') nodes.set(record.node, { id: record.id })
    else if (record.kind === 'nodeGone') nodes.delete(record.node)
  }
  return {
    atMs,
    pods: new Map(Array.from(idByPod, ([pod, id]) => [id, pod])),
    nodes,
    nextPod,
    nextShape,
  }
}
