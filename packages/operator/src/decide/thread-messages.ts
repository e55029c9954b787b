/**
 * Messages between the deciding thread and the one that started it. Records are sent in pieces: copying a large one at once
 * would block both threads.
 */
import type { InstanceType, PodSpec } from '@tenon/api'
import type { DisruptionQuestion, PodReason, PoolInput, Problem, ShapeSource, Solution } from '@tenon/engine'

/** Some elements of a list, some entries of a map, or a whole value, of one field of a record. */
export type Part =
  | { readonly kind: 'list'; readonly field: string; readonly items: readonly unknown[] }
  | { readonly kind: 'map'; readonly field: string; readonly items: readonly (readonly [unknown, unknown])[] }
  | { readonly kind: 'value'; readonly field: string; readonly value: unknown }

const mostItems = 1024
const longMs = 2
const shortMs = 0.5

/** Number of items in one piece; adapts to how long pieces take. */
export class PieceSize {
  #items = 16

  get items(): number {
    return this.#items
  }

  /** @param ms what the last piece took. */
  took(ms: number): void {
    if (ms > longMs) this.#items = Math.max(1, this.#items >> 1)
    else if (ms < shortMs) this.#items = Math.min(mostItems, this.#items << 1)
  }
}

/** Splits items into pieces of the current size. */
function* pieces<T>(items: Iterable<T>, size: PieceSize): Generator<readonly T[], void, undefined> {
  let piece: T[] = []
  for (const item of items) {
    piece.push(item)
    if (piece.length < size.items) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

/** Splits a record into parts. Lists and maps among its fields are split, other fields are sent whole. */
export function* partsOf(record: object, size: PieceSize): Generator<Part, void, undefined> {
  for (const [field, value] of Object.entries(record) as (readonly [string, unknown])[]) {
    if (Array.isArray(value)) {
      yield { kind: 'list', field, items: [] }
      for (const items of pieces<unknown>(value, size)) yield { kind: 'list', field, items }
    } else if (value instanceof Map) {
      yield { kind: 'map', field, items: [] }
      for (const items of pieces<readonly [unknown, unknown]>(value, size))
        yield { kind: 'map', field, items }
    } else yield { kind: 'value', field, value }
  }
}

/** Puts the parts of a record together again. */
export class Reassembly {
  readonly #fields = new Map<string, unknown>()

  add(part: Part): void {
    const known = this.#fields.get(part.field)
    switch (part.kind) {
      case 'list': {
        const list = (known ?? []) as unknown[]
        for (const item of part.items) list.push(item)
        this.#fields.set(part.field, list)
        break
      }
      case 'map': {
        const map = (known ?? new Map()) as Map<unknown, unknown>
        for (const [key, value] of part.items) map.set(key, value)
        this.#fields.set(part.field, map)
        break
      }
      case 'value':
        this.#fields.set(part.field, part.value)
    }
  }

  /** The record; the caller knows its type. */
  record(): unknown {
    return Object.fromEntries(this.#fields)
  }
}

/** Objects that many others refer to: each is sent once, and then named by its index. */
class Shared<T> {
  readonly items: T[] = []
  readonly #indexes = new Map<T, number>()

  /** Index of the object, by identity. */
  indexOf(item: T): number {
    let index = this.#indexes.get(item)
    if (index === undefined) {
      index = this.items.push(item) - 1
      this.#indexes.set(item, index)
    }
    return index
  }
}

/** Messages to the deciding thread. */
export type ToThread =
  /** A new problem follows; parts of an earlier one are dropped. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'forgetTypes'; readonly ids: readonly number[] }
  | { readonly kind: 'types'; readonly types: readonly (readonly [id: number, type: InstanceType])[] }
  | { readonly kind: 'part'; readonly part: Part }
  /** The problem is complete; decide within this many milliseconds from now. */
  | { readonly kind: 'solve'; readonly deadlineMs: number }
  /** The problem is complete; answer a question about it within this many milliseconds from now. */
  | { readonly kind: 'examine'; readonly question: DisruptionQuestion; readonly deadlineMs: number }

/** A problem whose instance types are named by id, and whose specs by index. */
interface ProblemRecord extends Omit<Problem, 'pools' | 'shapes'> {
  readonly pools: readonly (Omit<PoolInput, 'instanceTypes'> & {
    readonly instanceTypes: readonly number[]
  })[]
  readonly shapes: readonly (Omit<ShapeSource, 'spec'> & { readonly spec: number })[]
  readonly specs: readonly PodSpec[]
}

/** Types a thread keeps although the last problem did not name them. */
const typesKept = 4000

/** Ids of the instance types that a thread holds: catalogues are large and rarely change. */
export class SentTypes {
  readonly #ids = new WeakMap<InstanceType, number>()
  /** Ids of the types that the thread has, the longest unused first. */
  readonly #held = new Set<number>()
  readonly #kept: number
  #nextId = 0

  constructor(kept: number = typesKept) {
    this.#kept = kept
  }

  idOf(type: InstanceType): number {
    let id = this.#ids.get(type)
    if (id === undefined) {
      id = this.#nextId++
      this.#ids.set(type, id)
    }
    return id
  }

  /** Messages after which the thread has these types, and not too many others. */
  *messages(types: Iterable<InstanceType>, size: PieceSize): Generator<ToThread, void, undefined> {
    const wanted = new Map<number, InstanceType>()
    for (const type of types) wanted.set(this.idOf(type), type)
    const missing: (readonly [number, InstanceType])[] = []
    for (const [id, type] of wanted) {
      if (this.#held.delete(id)) this.#held.add(id)
      else missing.push([id, type])
    }
    const forgotten: number[] = []
    for (const id of this.#held) {
      if (this.#held.size + missing.length <= this.#kept || wanted.has(id)) break
      this.#held.delete(id)
      forgotten.push(id)
    }
    if (forgotten.length > 0) yield { kind: 'forgetTypes', ids: forgotten }
    for (const piece of pieces(missing, size)) {
      for (const [id] of piece) this.#held.add(id)
      yield { kind: 'types', types: piece }
    }
  }
}

/** All messages for a problem; each has to be sent before the next is generated. */
export function* problemMessages(
  problem: Problem,
  types: SentTypes,
  size: PieceSize,
): Generator<ToThread, void, undefined> {
  yield { kind: 'begin' }
  yield* types.messages(new Set(problem.pools.flatMap(({ instanceTypes }) => instanceTypes)), size)
  const specs = new Shared<PodSpec>()
  const record: ProblemRecord = {
    ...problem,
    pools: problem.pools.map((pool) => ({
      ...pool,
      instanceTypes: pool.instanceTypes.map((type) => types.idOf(type)),
    })),
    shapes: problem.shapes.map((shape) => ({ ...shape, spec: specs.indexOf(shape.spec) })),
    specs: specs.items,
  }
  for (const part of partsOf(record, size)) yield { kind: 'part', part }
}

/** Reads the messages in the deciding thread. */
export class ProblemReader {
  readonly #types = new Map<number, InstanceType>()
  #assembly = new Reassembly()

  hear(message: Exclude<ToThread, { readonly kind: 'solve' | 'examine' }>): void {
    switch (message.kind) {
      case 'begin':
        this.#assembly = new Reassembly()
        break
      case 'forgetTypes':
        for (const id of message.ids) this.#types.delete(id)
        break
      case 'types':
        for (const [id, type] of message.types) this.#types.set(id, type)
        break
      case 'part':
        this.#assembly.add(message.part)
    }
  }

  /** The problem that was received; it is not kept. */
  problem(): Problem {
    const { specs, ...record } = this.#assembly.record() as ProblemRecord
    this.#assembly = new Reassembly()
    return {
      ...record,
      pools: record.pools.map((pool) => ({
        ...pool,
        instanceTypes: pool.instanceTypes.map((id) => this.#types.get(id) as InstanceType),
      })),
      shapes: record.shapes.map((shape) => ({ ...shape, spec: specs[shape.spec] as PodSpec })),
    }
  }
}

type Claim = Solution['claims'][number]

/** Fields that many claims share. */
type Frame = Pick<Claim, 'labels' | 'requirements' | 'instanceTypes'>

/** A solution whose large repeated values are named by index. */
interface SolutionRecord extends Omit<Solution, 'claims' | 'failures'> {
  readonly claims: readonly (Omit<Claim, keyof Frame> & { readonly [Key in keyof Frame]: number })[]
  readonly shared: readonly unknown[]
  readonly failures: ReadonlyMap<number, number>
  readonly reasons: readonly PodReason[]
}

export function solutionParts(solution: Solution, size: PieceSize): Generator<Part, void, undefined> {
  const shared = new Shared<unknown>()
  const reasons = new Shared<PodReason>()
  const record: SolutionRecord = {
    ...solution,
    claims: solution.claims.map((claim) => ({
      ...claim,
      labels: shared.indexOf(claim.labels),
      requirements: shared.indexOf(claim.requirements),
      instanceTypes: shared.indexOf(claim.instanceTypes),
    })),
    shared: shared.items,
    failures: new Map(Array.from(solution.failures, ([pod, reason]) => [pod, reasons.indexOf(reason)])),
    reasons: reasons.items,
  }
  return partsOf(record, size)
}

export function solutionFrom(assembly: Reassembly): Solution {
  const { shared, reasons, ...record } = assembly.record() as SolutionRecord
  const common = (index: number) => shared[index] as never
  return {
    ...record,
    claims: record.claims.map(({ labels, requirements, instanceTypes, ...claim }) => ({
      ...claim,
      labels: common(labels),
      requirements: common(requirements),
      instanceTypes: common(instanceTypes),
    })),
    failures: new Map(Array.from(record.failures, ([pod, reason]) => [pod, reasons[reason] as PodReason])),
  }
}
