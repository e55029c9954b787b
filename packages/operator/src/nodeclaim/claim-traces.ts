/**
 * The trace of each NodeClaim: launch, registration and initialization (adoption.md 4). The ids of its root are an annotation,
 * so that another process goes on with it: spans that a process did not see begin are told by the times of conditions.
 */
import { ConditionSet, type NewObject, type NodeClaim } from '@tenon/api'
import { traceAnnotations, traceparentAnnotation } from '@tenon/kube'
import {
  currentTrace,
  type FinishedSpan,
  parseTraceparent,
  type TraceContext,
  traceparentOf,
  type Tracer,
} from '@tenon/runtime'
import { nodeClaimConditions } from '../state/conditions.ts'

/** The span for which the claim was created: of a batch, or of a disruption. */
const causeAnnotation = 'tenon.sh/created-in-trace'
/** Annotations that are about the launch of one claim alone. */
export const claimTraceAnnotations: readonly string[] = [traceparentAnnotation, causeAnnotation]

/** The spans below the root, each with the condition that ends it. Each begins where the one before ends. */
const phases = [
  { name: 'launch', condition: 'Launched' },
  { name: 'register', condition: 'Registered' },
  { name: 'initialize', condition: 'Initialized' },
] as const

/** When phases of a claim began and ended, as far as this process saw it. */
interface Seen {
  readonly startMs?: number
  readonly endsMs: (number | undefined)[]
  hasFailed: boolean
}

/** A claim that is not initialized later than this was before, and has lost its Node since: that is no launch. */
const longestMs = 60 * 60_000
/** Bounds memory; what is forgotten is told by conditions, in whole seconds. */
const mostSeen = 10_000

export class ClaimTraces {
  readonly #tracer: Tracer
  /** By name of the claim, until it is initialized or gone. */
  readonly #seen = new Map<string, Seen>()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  /** A claim that is about to be created, with the annotations of its trace. It is sampled with what it is created for. */
  annotated<T extends NewObject<NodeClaim> & { readonly metadata: { readonly name: string } }>(claim: T): T {
    const cause = currentTrace()
    const chosen = this.#tracer.rootContext()
    const root = cause === undefined ? chosen : { ...chosen, isSampled: cause.isSampled }
    if (!root.isSampled) return claim
    const annotations = {
      ...claim.metadata.annotations,
      ...traceAnnotations(root),
      ...(cause && { [causeAnnotation]: traceparentOf(cause) }),
    }
    this.#see(claim.metadata.name, { startMs: this.#tracer.now(), endsMs: [], hasFailed: false })
    return { ...claim, metadata: { ...claim.metadata, annotations } }
  }

  /** The span of what is done for the claim now; undefined if its trace has ended, or there is none. */
  current(claim: NodeClaim): TraceContext | undefined {
    const root = this.#open(claim)
    if (root === undefined) return undefined
    const conditions = ConditionSet.of(claim, nodeClaimConditions)
    const at = phases.findIndex(({ condition }) => !conditions.isTrue(condition))
    return at < 0 ? undefined : phaseContext(root, at)
  }

  /** Reports the phases that a stored change of conditions has ended, and with the last one the whole trace. */
  advanced(claim: NodeClaim, before: ConditionSet, after: ConditionSet): void {
    const root = this.#open(claim)
    if (root === undefined || before.isTrue('Initialized')) return
    const { name } = claim.metadata
    const seen = this.#seen.get(name) ?? { endsMs: [], hasFailed: false }
    const isOver = after.isTrue('Initialized')
    for (const [at, { condition }] of phases.entries()) {
      const isNew = after.isTrue(condition) && !before.isTrue(condition)
      // Phases that ended in another process may have been lost with it. A span that is reported twice has the same ids.
      const isUnreported = isOver && seen.endsMs[at] === undefined
      if (!isNew && !isUnreported) continue
      const startMs = this.#startMs(claim, after, seen, at)
      seen.endsMs[at] = isNew ? this.#tracer.now() : transitionMs(after, condition)
      this.#record(claim, root, at, { startMs, endMs: seen.endsMs[at] })
    }
    if (!isOver) {
      this.#see(name, seen)
      return
    }
    this.#seen.delete(name)
    this.#record(claim, root, 'root', {
      startMs: this.#startMs(claim, after, seen, 0),
      endMs: seen.endsMs[2] ?? this.#tracer.now(),
    })
  }

  /** Reports once that the claim is being deleted before it was initialized. */
  failed(claim: NodeClaim): void {
    const root = this.#open(claim)
    const conditions = ConditionSet.of(claim, nodeClaimConditions)
    if (root === undefined || conditions.isTrue('Initialized')) return
    const { name } = claim.metadata
    const seen = this.#seen.get(name) ?? { endsMs: [], hasFailed: false }
    if (seen.hasFailed) return
    this.#see(name, { ...seen, hasFailed: true })
    const at = phases.findIndex(({ condition }) => !conditions.isTrue(condition))
    const end = { endMs: this.#tracer.now(), error: 'deleted' }
    this.#record(claim, root, at, { startMs: this.#startMs(claim, conditions, seen, at), ...end })
    this.#record(claim, root, 'root', { startMs: this.#startMs(claim, conditions, seen, 0), ...end })
  }

  /** The claim is gone. */
  forget(name: string): void {
    this.#seen.delete(name)
  }

  /** The root of a trace that may go on. */
  #open(claim: NodeClaim): TraceContext | undefined {
    const ageMs = this.#tracer.now() - Date.parse(claim.metadata.creationTimestamp ?? '')
    return ageMs < longestMs ? traceOf(claim) : undefined
  }

  #see(name: string, seen: Seen): void {
    if (this.#seen.size >= mostSeen) this.#seen.clear()
    this.#seen.set(name, seen)
  }

  #startMs({ metadata }: NodeClaim, conditions: ConditionSet, { startMs, endsMs }: Seen, at: number): number {
    const before = phases[at - 1]
    if (before !== undefined) return endsMs[at - 1] ?? transitionMs(conditions, before.condition)
    return startMs ?? Date.parse(metadata.creationTimestamp ?? '')
  }

  #record(
    claim: NodeClaim,
    root: TraceContext,
    at: number | 'root',
    { startMs, endMs, error }: Partial<Pick<FinishedSpan, 'startMs' | 'endMs' | 'error'>>,
  ): void {
    const { annotations, labels, name } = claim.metadata
    const cause = parseTraceparent(annotations?.[causeAnnotation])
    const isRoot = at === 'root'
    const now = this.#tracer.now()
    const began = Number.isFinite(startMs) ? Number(startMs) : now
    this.#tracer.record({
      name: isRoot ? 'NodeClaim' : (phases[at]?.name ?? ''),
      context: isRoot ? root : phaseContext(root, at),
      ...(!isRoot && { parent: root }),
      kind: 'internal',
      startMs: began,
      endMs: Math.max(began, Number.isFinite(endMs) ? Number(endMs) : now),
      attributes: {
        'tenon.nodeclaim': name,
        'tenon.nodepool': labels?.['karpenter.sh/nodepool'] ?? '',
        ...(claim.status?.nodeName !== undefined && { 'k8s.node.name': claim.status.nodeName }),
      },
      links: isRoot && cause !== undefined ? [cause] : [],
      ...(error !== undefined && { error }),
    })
  }
}

/** The root of the claim's trace; undefined without a readable annotation. */
export function traceOf({ metadata }: NodeClaim): TraceContext | undefined {
  const context = parseTraceparent(metadata.annotations?.[traceparentAnnotation])
  return context?.isSampled === true ? context : undefined
}

/** The ids of phases follow from that of the root, so that all processes give the same. */
function phaseContext(root: TraceContext, at: number): TraceContext {
  const spanId = (BigInt(`0x${root.spanId}`) ^ BigInt(at + 1)).toString(16).padStart(16, '0')
  return { ...root, spanId: /^0+$/.test(spanId) ? '000000000000000f' : spanId }
}

function transitionMs(conditions: ConditionSet, type: string): number {
  return Date.parse(conditions.get(type)?.lastTransitionTime ?? '')
}
