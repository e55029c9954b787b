/** Turns records into something to play: initial state, changes, and costs. */
import type { KubeObject, Pod } from '@tenon/api'
import { Bill, type BilledHour } from '../play/bill.ts'
import type { TimedChange } from '../play/play.ts'
import type { SnapshotCatalogue } from '../snapshot/snapshot.ts'
import type { NodeCameRecord, TraceRecord } from './records.ts'

/** A period without data. */
export interface Gap {
  readonly fromMs: number
  readonly toMs: number
  readonly because: string
}

/** What was observed. */
export interface RecordedFigures {
  readonly cost: number
  readonly peakNodes: number
  readonly launches: number
  /** Pods that were evicted and recreated. */
  readonly evictions: number
  /** Nodes of unknown price; they are in no sum. */
  readonly unpricedNodes: number
}

/** A pod and its number in the recording. */
interface RecordedPod {
  readonly id: string
  readonly pod: Pod
  readonly node?: string
}

export interface Recording {
  readonly startMs: number
  readonly endMs: number
  readonly source: string
  readonly gaps: readonly Gap[]
  /** Initial NodePools, DaemonSets, PodDisruptionBudgets and priority classes. */
  readonly objects: readonly KubeObject[]
  readonly nodes: readonly NodeCameRecord[]
  readonly pods: readonly RecordedPod[]
  /** In order of time. */
  readonly changes: readonly TimedChange[]
  /** Every node that was seen. */
  readonly allNodes: readonly NodeCameRecord[]
  readonly catalogues: readonly SnapshotCatalogue[] | undefined
  readonly figures: RecordedFigures
  /** Cost per hour, without nodes of unknown price. */
  readonly hours: readonly BilledHour[]
}

/** @returns why there is nothing to play. */
export function recordingOf(records: readonly TraceRecord[]): Recording | { readonly message: string } {
  const first = records.find((record) => record.kind === 'session')
  if (first?.kind !== 'session') return { message: 'the recording has no session' }
  return new RecordingReader(first.atMs, first.source).read(records)
}

class RecordingReader {
  readonly #startMs: number
  readonly #source: string
  readonly #shapes = new Map<number, Pod>()
  readonly #gaps: Gap[] = []
  readonly #initial: RecordedPod[] = []
  readonly #objects = new Map<string, KubeObject>()
  /** Objects as they were recorded last. */
  readonly #texts = new Map<string, string>()
  readonly #changes: TimedChange[] = []
  readonly #nodes: NodeCameRecord[] = []
  readonly #nodeEndMs = new Map<NodeCameRecord, number>()
  readonly #liveNodes = new Map<string, NodeCameRecord>()
  #catalogues: readonly SnapshotCatalogue[] | undefined
  #endMs: number
  #evictions = 0
  /** The first session records the initial state before any change. */
  #isBeginning = true

  constructor(startMs: number, source: string) {
    this.#startMs = startMs
    this.#endMs = startMs
    this.#source = source
  }

  read(records: readonly TraceRecord[]): Recording {
    for (const record of records) this.#take(record)
    const initialNodes = this.#nodes.filter(({ atMs }) => atMs <= this.#startMs)
    const bill = this.#bill()
    return {
      startMs: this.#startMs,
      endMs: this.#endMs,
      source: this.#source,
      gaps: this.#gaps,
      objects: [...this.#objects.values()],
      nodes: initialNodes,
      allNodes: this.#nodes,
      pods: this.#initial,
      changes: this.#changes.toSorted((a, b) => a.atMs - b.atMs),
      catalogues: this.#catalogues,
      figures: {
        cost: bill.cost,
        peakNodes: bill.peakInstances,
        launches: this.#nodes.length - initialNodes.length,
        evictions: this.#evictions,
        unpricedNodes: bill.unpriced,
      },
      hours: bill.hours,
    }
  }

  #take(record: TraceRecord): void {
    if (record.kind !== 'shape') this.#endMs = Math.max(this.#endMs, record.atMs)
    switch (record.kind) {
      case 'session':
        return
      case 'alive':
        this.#isBeginning = false
        return
      case 'shape':
        this.#shapes.set(record.shape, record.pod)
        return
      case 'gap':
        this.#gaps.push({ fromMs: record.fromMs, toMs: record.atMs, because: record.because })
        return
      case 'catalogue':
        this.#catalogues = withNew(this.#catalogues, record.catalogues)
        return
      case 'podMoved':
        this.#evictions++
        return
      case 'podEnded':
        this.#changes.push({ atMs: record.atMs, change: { kind: 'podEnded', id: `pod-${record.pod}` } })
        return
      case 'podCame':
        this.#podCame(record)
        return
      case 'nodeCame':
        this.#nodes.push(record)
        this.#liveNodes.set(record.node, record)
        return
      case 'nodeGone':
        this.#nodeGone(record.node, record.atMs)
        return
      case 'object':
      case 'objectGone':
        this.#object(record)
    }
  }

  #podCame(record: Extract<TraceRecord, { kind: 'podCame' }>): void {
    const shape = this.#shapes.get(record.shape)
    if (shape === undefined) return
    const id = `pod-${record.pod}`
    const { uid: _uid, ...metadata } = shape.metadata
    const pod: Pod = { ...shape, metadata: { ...metadata, name: record.name } }
    if (record.atMs <= this.#startMs)
      this.#initial.push({ id, pod, ...(record.node !== undefined && { node: record.node }) })
    else this.#changes.push({ atMs: record.atMs, change: { kind: 'podAdded', id, pod } })
  }

  #nodeGone(name: string, atMs: number): void {
    const node = this.#liveNodes.get(name)
    if (node === undefined) return
    this.#liveNodes.delete(name)
    this.#nodeEndMs.set(node, atMs)
  }

  #object(record: Extract<TraceRecord, { kind: 'object' | 'objectGone' }>): void {
    const { atMs } = record
    if (record.kind === 'objectGone') {
      const { apiVersion, objectKind, namespace, name } = record
      const place = namespace === undefined ? {} : { namespace }
      this.#texts.delete(`${apiVersion}/${objectKind}/${namespace ?? ''}/${name}`)
      this.#changes.push({ atMs, change: { kind: 'removed', apiVersion, objectKind, ...place, name } })
      return
    }
    const { object } = record
    const { namespace = '', name } = object.metadata
    const key = `${object.apiVersion}/${object.kind}/${namespace}/${name}`
    // A later session records existing objects again.
    const text = JSON.stringify(object)
    if (this.#texts.get(key) === text) return
    this.#texts.set(key, text)
    if (this.#isBeginning) this.#objects.set(key, object)
    else this.#changes.push({ atMs, change: { kind: 'put', object } })
  }

  #bill(): Bill {
    const bill = new Bill(this.#startMs)
    const moments = this.#nodes.flatMap((node) => {
      const from = Math.max(node.atMs, this.#startMs)
      const to = Math.min(this.#nodeEndMs.get(node) ?? this.#endMs, this.#endMs)
      return to < from
        ? []
        : [
            { atMs: from, isAdded: true, price: node.pricePerHour },
            { atMs: to, isAdded: false, price: node.pricePerHour },
          ]
    })
    for (const { atMs, isAdded, price } of moments.toSorted((a, b) => a.atMs - b.atMs)) {
      if (isAdded) bill.add(atMs, price)
      else bill.remove(atMs, price)
    }
    bill.advance(this.#endMs)
    return bill
  }
}

/** Adds NodePools that are new; existing ones keep their first catalogue. */
function withNew(
  known: readonly SnapshotCatalogue[] = [],
  offered: readonly SnapshotCatalogue[],
): readonly SnapshotCatalogue[] {
  const pools = new Set(known.flatMap(({ nodePools }) => nodePools))
  const added = offered.flatMap((catalogue) => {
    const nodePools = catalogue.nodePools.filter((name) => !pools.has(name))
    return nodePools.length === 0 ? [] : [{ ...catalogue, nodePools }]
  })
  return [...known, ...added]
}
