/** A problem on its way to the thread that decides. */
import type { InstanceType, PodSpec } from '@tenon/api'
import type { DisruptionQuestion, PoolInput, Problem, ShapeSource } from '@tenon/engine'
import { Assembly, type Part, partsOf, type PieceSize, pieces, Shared } from './parts.ts'

/** What the deciding thread is told. */
export type ToThread =
  /** A new problem follows; what was told of another is void. */
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

/** What the instance types are called that a thread holds. Catalogues are large and rarely change. */
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

  /** What the thread must be told so that it has these types, and not too many others. */
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

/** Everything that must be told for a problem; each message has to be sent before the next is asked for. */
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

/** What the deciding thread has heard. */
export class ProblemReader {
  readonly #types = new Map<number, InstanceType>()
  #assembly = new Assembly()

  hear(message: Exclude<ToThread, { readonly kind: 'solve' | 'examine' }>): void {
    switch (message.kind) {
      case 'begin':
        this.#assembly = new Assembly()
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

  /** The problem that was told; it is not kept. */
  problem(): Problem {
    const { specs, ...record } = this.#assembly.record() as ProblemRecord
    this.#assembly = new Assembly()
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
