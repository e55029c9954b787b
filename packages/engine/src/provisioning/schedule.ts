/** The solve loop: where each pod goes, and which claims to create for it (scheduling.md 6). */
import { labels, type Pod } from '@tenon/api'
import type { PodReason, TemplateReason } from '../reasons/reasons.ts'
import type { PoolInput, SchedulingInput } from '../snapshot/input.ts'
import type { NewClaim, PoolWithoutTypes, SchedulingControl, SchedulingResult } from '../snapshot/result.ts'
import { NodeFill, nodeOrder } from './existing-nodes.ts'
import { ClaimFill } from './new-claims.ts'
import { type PodShape, ShapeCatalogue } from './shape.ts'
import { compilePool, compileTemplate, PoolBudget, poolOrder, type Template } from './template.ts'
import { DomainUniverse } from './topology/domains.ts'
import { Topology } from './topology/topology.ts'

/** Decides for every pod of the input. Equal input gives equal output, whatever its order. */
export function schedule(input: SchedulingInput, _control?: SchedulingControl): SchedulingResult {
  const simulation = new Simulation(input)
  simulation.run()
  return simulation.result()
}

interface TemplateState {
  readonly template: Template
  readonly budget: PoolBudget
}

/** What is known of a shape: where it certainly does not go any more. */
interface ShapeMemory {
  /** Nodes that may still take it, in order. */
  nodes: readonly NodeFill[]
  readonly refusedBy: Set<ClaimFill>
}

class Simulation {
  readonly #input: SchedulingInput
  readonly #nodes: readonly NodeFill[]
  readonly #templates: readonly TemplateState[]
  readonly #poolsWithoutTypes: readonly PoolWithoutTypes[]
  readonly #queue: readonly { readonly pod: Pod; readonly shape: PodShape }[]
  readonly #topology: Topology
  /** Open claims, fewest pods first; ties keep their order. */
  readonly #claims: ClaimFill[] = []
  readonly #memory = new Map<PodShape, ShapeMemory>()
  readonly #failures = new Map<Pod, PodReason>()
  #opened = 0

  constructor(input: SchedulingInput) {
    this.#input = input
    const pools = input.pools.toSorted((a, b) => poolOrder(a.nodePool, b.nodePool))
    const compiled = pools.map(compilePool)
    const withTemplates = compiled.map((pool) => ({
      pool,
      template: compileTemplate(pool, input.daemons, input.policy),
    }))
    this.#templates = withTemplates.flatMap(({ pool, template }) =>
      template === undefined ? [] : [{ template, budget: new PoolBudget(pool.input) }],
    )
    this.#poolsWithoutTypes = withTemplates
      .filter(({ template }) => template === undefined)
      .map(({ pool }) => ({ nodePool: pool.input.nodePool.metadata.name, becauseOfMinValues: false }))
    this.#nodes = input.nodes.toSorted(nodeOrder).map((node) => new NodeFill(node, input.daemons))
    const shapes = new ShapeCatalogue(input.policy, pools.some(hasSoftTaint))
    this.#queue = input.pods
      .map((pod) => ({ pod, shape: shapes.shapeOf(pod) }))
      .toSorted((a, b) => podOrder(a.pod, a.shape, b.pod, b.shape))
    this.#topology = new Topology(
      input.topology,
      new DomainUniverse(compiled),
      new Set(input.pods.map((pod) => pod.metadata.uid ?? '')),
      new Set(this.#queue.map(({ shape }) => shape)),
    )
    for (const { input: node } of this.#nodes)
      this.#topology.addHost(node.labels[labels.hostname] ?? node.name)
  }

  /** Tries every pod; those that fail are tried again for as long as others still find places. */
  run(): void {
    let queue = this.#queue
    while (queue.length > 0) {
      const failed = queue.filter(({ pod, shape }) => !this.#place(pod, shape))
      if (failed.length === queue.length) return
      queue = failed
    }
  }

  result(): SchedulingResult {
    const claims: NewClaim[] = []
    for (const fill of this.#claims) {
      const claim = fill.finish(this.#input.policy)
      if (!('kind' in claim)) claims.push(claim)
      else
        for (const pod of fill.pods)
          this.#failures.set(pod, {
            kind: 'truncationBrokeMinValues',
            nodePool: fill.template.nodePool.metadata.name,
          })
    }
    return {
      claims: claims.toSorted(claimOrder),
      placements: this.#nodes.flatMap((fill) => fill.pods.map((pod) => ({ pod, node: fill.input.name }))),
      failures: [...this.#failures].map(([pod, reason]) => ({ pod, reason })),
      poolsWithoutTypes: this.#poolsWithoutTypes,
      undecided: [],
      pricePerHour: 0,
      firstFitPricePerHour: 0,
    }
  }

  #place(pod: Pod, wanted: PodShape): boolean {
    let last: PodReason = { kind: 'noPools' }
    for (let shape: PodShape | undefined = wanted; shape !== undefined; shape = shape.relaxed()) {
      if (this.#onNode(pod, shape) || this.#onOpenClaim(pod, shape)) {
        this.#failures.delete(pod)
        return true
      }
      const refusal = this.#onNewClaim(pod, shape)
      if (refusal === undefined) {
        this.#failures.delete(pod)
        return true
      }
      last = refusal
    }
    this.#failures.set(pod, last)
    return false
  }

  #memoryOf(shape: PodShape): ShapeMemory {
    let memory = this.#memory.get(shape)
    if (memory === undefined) {
      memory = { nodes: this.#nodes, refusedBy: new Set() }
      this.#memory.set(shape, memory)
    }
    return memory
  }

  /** First fit; nodes only fill up, so one that does not hold a shape is never asked again for it. */
  #onNode(pod: Pod, shape: PodShape): boolean {
    const memory = this.#memoryOf(shape)
    const full = new Set<NodeFill>()
    let isPlaced = false
    for (const node of memory.nodes) {
      if (!node.accepts(shape)) full.add(node)
      else if (node.tryPlace(pod, shape, this.#topology)) {
        isPlaced = true
        break
      }
    }
    if (full.size > 0) memory.nodes = memory.nodes.filter((node) => !full.has(node))
    return isPlaced
  }

  #onOpenClaim(pod: Pod, shape: PodShape): boolean {
    const { refusedBy } = this.#memoryOf(shape)
    if (refusedBy.size === this.#claims.length) return false
    for (const [index, claim] of this.#claims.entries()) {
      if (refusedBy.has(claim)) continue
      const verdict = claim.judge(shape, this.#input.policy, this.#topology, false)
      if (verdict.kind === 'refused') {
        if (verdict.isFinal) refusedBy.add(claim)
        continue
      }
      claim.place(pod, shape, verdict, this.#topology)
      this.#sinkFrom(index)
      return true
    }
    return false
  }

  /** @returns why no template takes the pod, or undefined when one did. */
  #onNewClaim(pod: Pod, shape: PodShape): PodReason | undefined {
    if (this.#templates.length === 0) {
      return this.#input.pools.length === 0 ? { kind: 'noPools' } : { kind: 'noTypesInPools' }
    }
    const refusals: { nodePool: string; reason: TemplateReason }[] = []
    for (const { template, budget } of this.#templates) {
      const reason = this.#open(template, budget, pod, shape)
      if (reason === undefined) return undefined
      refusals.push({ nodePool: template.nodePool.metadata.name, reason })
    }
    return { kind: 'noTemplate', templates: refusals }
  }

  #open(template: Template, budget: PoolBudget, pod: Pod, shape: PodShape): TemplateReason | undefined {
    if (budget.nodesExhausted) return { kind: 'nodeLimit' }
    const types = budget.affordable(template.types)
    if (types.length === 0) return { kind: 'limits' }
    const claim = new ClaimFill(template, types, `hostname-placeholder-${this.#opened++}`)
    const { policy } = this.#input
    const verdict = claim.judge(shape, policy, this.#topology, policy.minValues === 'BestEffort')
    if (verdict.kind === 'refused') return verdict.reason
    claim.place(pod, shape, verdict, this.#topology)
    budget.charge(claim.types)
    this.#claims.push(claim)
    this.#riseFromEnd()
    return undefined
  }

  /** Moves a claim that gained a pod behind those that now have fewer. */
  #sinkFrom(start: number): void {
    const claims = this.#claims
    const claim = claims[start] as ClaimFill
    let index = start
    while (index + 1 < claims.length && (claims[index + 1] as ClaimFill).pods.length < claim.pods.length) {
      claims[index] = claims[index + 1] as ClaimFill
      index++
    }
    claims[index] = claim
  }

  /** Moves a new claim before those that have more pods. */
  #riseFromEnd(): void {
    const claims = this.#claims
    let index = claims.length - 1
    const claim = claims[index] as ClaimFill
    while (index > 0 && (claims[index - 1] as ClaimFill).pods.length > claim.pods.length) {
      claims[index] = claims[index - 1] as ClaimFill
      index--
    }
    claims[index] = claim
  }
}

function hasSoftTaint(pool: PoolInput): boolean {
  return (pool.nodePool.spec.template.spec.taints ?? []).some((taint) => taint.effect === 'PreferNoSchedule')
}

/** Large pods first; then the oldest, then by UID (scheduling.md 6.1). */
function podOrder(a: Pod, shapeA: PodShape, b: Pod, shapeB: PodShape): number {
  return (
    (shapeB.requests['cpu'] ?? 0) - (shapeA.requests['cpu'] ?? 0) ||
    (shapeB.requests['memory'] ?? 0) - (shapeA.requests['memory'] ?? 0) ||
    compare(a.metadata.creationTimestamp, b.metadata.creationTimestamp) ||
    compare(a.metadata.uid, b.metadata.uid)
  )
}

function claimOrder(a: NewClaim, b: NewClaim): number {
  return compare(a.nodePool, b.nodePool) || compare(a.pods[0]?.metadata.uid, b.pods[0]?.metadata.uid)
}

function compare(a: string | undefined, b: string | undefined): number {
  return (a ?? '') < (b ?? '') ? -1 : (a ?? '') > (b ?? '') ? 1 : 0
}
