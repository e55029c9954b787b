/** A recording as a source of events: the state at any time of it (console.md 1). */
import { karpenterKinds, kinds, type KubeObject, type Node, type ResourceType } from '@tenon/api'
import type { Gap, TraceRecord } from '@tenon/ask'
import { rfc3339 } from '@tenon/runtime'
import type { SourceEvent } from '../model/event.ts'
import type { ConsoleResource } from '../model/view.ts'

/** Something was added, changed or removed; `undone` restores the previous state. */
interface Change {
  readonly atMs: number
  readonly done: SourceEvent
  readonly undone: SourceEvent
}

const pool = karpenterKinds.nodePool
const unrecorded = {
  nodeclaims: 'a recording does not tell them, nor on which nodes pods ran',
  pods: 'a recording does not tell on which nodes pods ran, nor whether nodes were Ready',
  journal: 'a recording does not tell decisions: tenon replay plays it',
  decisions: 'a recording does not tell decisions: tenon replay plays it',
} as const

export class Timeline {
  readonly source: string
  readonly startMs: number
  readonly endMs: number
  readonly #emit: (event: SourceEvent) => void
  readonly #changes: readonly Change[]
  readonly #gaps: readonly Gap[]
  readonly #objects = new Map<string, KubeObject>()
  #atMs = Number.NEGATIVE_INFINITY
  /** Number of changes that are applied at the current time. */
  #done = 0

  /**
   * Emits the initial state.
   * @param tell receives the changes when the time moves.
   * @throws RangeError if the records span no time.
   */
  constructor(records: readonly TraceRecord[], emit: (event: SourceEvent) => void) {
    const times = records.flatMap((record) => (record.kind === 'shape' ? [] : [record.atMs]))
    const session = records.find((record) => record.kind === 'session')
    if (session?.kind !== 'session') throw new RangeError('the recording has no session')
    this.source = session.source
    this.startMs = session.atMs
    this.endMs = times.reduce((most, each) => Math.max(most, each), session.atMs)
    this.#emit = emit
    this.#changes = changesIn(records, session.atMs)
    this.#gaps = records.flatMap((record) =>
      record.kind === 'gap' ? [{ fromMs: record.fromMs, toMs: record.atMs, because: record.because }] : [],
    )
    for (const [what, why] of Object.entries(unrecorded)) emit({ kind: 'absent', what, why })
    for (const resource of ['nodes', 'nodepools'] as const) emit({ kind: 'read', resource })
    emit({ kind: 'nodePrices', prices: pricesIn(records) })
    this.seek(this.startMs)
  }

  /** Unix milliseconds. */
  get atMs(): number {
    return this.#atMs
  }

  /** Why there is no data at this time; undefined if there is. */
  get gap(): string | undefined {
    return this.#gaps.find(({ fromMs, toMs }) => fromMs < this.#atMs && this.#atMs < toMs)?.because
  }

  /** Moves to another time; clamped to the recording. */
  seek(atMs: number): void {
    this.#atMs = Math.min(this.endMs, Math.max(this.startMs, atMs))
    for (;;) {
      const next = this.#changes[this.#done]
      if (next === undefined || next.atMs > this.#atMs) break
      this.#done++
      this.#become(next.done)
    }
    for (;;) {
      const last = this.#changes[this.#done - 1]
      if (last === undefined || last.atMs <= this.#atMs) break
      this.#done--
      this.#become(last.undone)
    }
  }

  /** The object at this time; undefined if it does not exist or was not recorded. */
  object({ kind }: ResourceType, name: string): KubeObject | undefined {
    return this.#objects.get(`${kind}/${name}`)
  }

  #become(event: SourceEvent): void {
    if (event.kind === 'set')
      this.#objects.set(keyOf(event.resource, event.object.metadata.name), event.object)
    if (event.kind === 'removed') this.#objects.delete(keyOf(event.resource, event.name))
    this.#emit(event)
  }
}

function keyOf(resource: ConsoleResource, name: string): string {
  return `${resource === 'nodes' ? kinds.node.kind : pool.kind}/${name}`
}

function changesIn(records: readonly TraceRecord[], startMs: number): readonly Change[] {
  const held = new Map<string, SourceEvent>()
  const changes: Change[] = []
  for (const record of records) {
    const done = eventOf(record)
    if (done === undefined || record.kind === 'shape') continue
    const name = done.kind === 'set' ? done.object.metadata.name : done.name
    const key = keyOf(done.resource, name)
    const undone = held.get(key) ?? { kind: 'removed', resource: done.resource, name }
    held.set(key, done)
    // Nodes have their creation time, which may be before the beginning.
    changes.push({ atMs: Math.max(startMs, record.atMs), done, undone })
  }
  return changes
    .map((change, at) => ({ change, at }))
    .toSorted((a, b) => a.change.atMs - b.change.atMs || a.at - b.at)
    .map(({ change }) => change)
}

function eventOf(record: TraceRecord): Extract<SourceEvent, { kind: 'set' | 'removed' }> | undefined {
  switch (record.kind) {
    case 'nodeCame':
      return { kind: 'set', resource: 'nodes', object: nodeOf(record) }
    case 'nodeGone':
      return { kind: 'removed', resource: 'nodes', name: record.node }
    case 'object':
      if (record.object.kind !== pool.kind) return undefined
      return { kind: 'set', resource: 'nodepools', object: record.object }
    case 'objectGone':
      if (record.objectKind !== pool.kind) return undefined
      return { kind: 'removed', resource: 'nodepools', name: record.name }
    case 'alive':
    case 'catalogue':
    case 'gap':
    case 'podCame':
    case 'podEnded':
    case 'podMoved':
    case 'session':
    case 'shape':
      return undefined
  }
}

function nodeOf({
  allocatable,
  atMs,
  capacity,
  labels,
  node,
}: Extract<TraceRecord, { kind: 'nodeCame' }>): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: node, labels, creationTimestamp: rfc3339(atMs) },
    status: { allocatable, capacity },
  }
}

function pricesIn(records: readonly TraceRecord[]): ReadonlyMap<string, number> {
  return new Map(
    records.flatMap((record) =>
      record.kind === 'nodeCame' && record.pricePerHour !== undefined
        ? [[record.node, record.pricePerHour] as const]
        : [],
    ),
  )
}
