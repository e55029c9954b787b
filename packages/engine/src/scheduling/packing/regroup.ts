/**
 * Packs the pods of new claims again if that is cheaper. Only claims of one class exchange pods, and only if no topology rule
 * binds their pods: then resources alone decide, and any pod may be on any of these claims.
 */
import { sumOfPrices } from '@tenon/api'
import type { SchedulingPolicy } from '../../input/input.ts'
import type { ClaimClass } from '../claims/claim-class.ts'
import type { ClaimFinisher } from '../claims/finished-claims.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import { addTo } from '../pods/resource-space.ts'
import type { PoolBudget, Template } from '../claims/pool-template.ts'
import type { PodTopology } from '../topology/pod-topology.ts'
import { isCheaper, type PlanCost } from './cheaper.ts'
import type { Group, PlannedBin } from './group.ts'
import { uniformBins } from './uniform-bins.ts'
import { Effort } from './packing.ts'
import type { PackingCache } from './packing-cache.ts'

export interface RegroupContext {
  readonly compiled: CompiledProblem
  readonly topology: PodTopology
  readonly budgets: ReadonlyMap<Template, PoolBudget>
  readonly improvement: NonNullable<SchedulingPolicy['improvement']>
  readonly shouldStop: () => boolean
}

/** Work limit of one decision, in comparisons of a size with a room: about a tenth of a second. */
const effortUnits = 30_000_000

/** The claims of a cheaper plan, or the same list if there is none. */
export function regrouped(claims: readonly OpenClaim[], context: RegroupContext): OpenClaim[] {
  const effort = new Effort(effortUnits, context.shouldStop)
  let current = [...claims]
  for (const group of groupsOf(claims, context)) {
    if (effort.isSpent) break
    const planned =
      context.improvement === 'planned'
        ? plannedBins(group, effort, context.compiled.packings)
        : uniformBins(group, effort, context.compiled.classes)
    if (planned === undefined) continue
    const renewed = planned.map((bin) => claimOf(bin, group.claims[0] as OpenClaim, context.compiled))
    if (!isAcceptable(renewed, group, context)) continue
    const gone = new Set(group.claims)
    current = [...current.filter((claim) => !gone.has(claim)), ...renewed]
  }
  return current
}

function groupsOf(claims: readonly OpenClaim[], context: RegroupContext): readonly Group[] {
  const byClass = new Map<ClaimClass, OpenClaim[]>()
  for (const claim of claims) {
    // Without a price it is unknown whether another packing is cheaper.
    if (!isMixable(claim, context) || context.compiled.finisher.priceOf(claim) === undefined) continue
    const group = byClass.get(claim.class)
    if (group === undefined) byClass.set(claim.class, [claim])
    else group.push(claim)
  }
  return [...byClass]
    .map(([ofClass, members]) => groupOf(ofClass, members, context))
    .toSorted((a, b) => b.pricePerHour - a.pricePerHour || a.class.index - b.class.index)
}

/** Whether the pods of the claim may run on any claim of its class. */
export function isMixable(
  { class: ofClass, hostPorts, pods, consumer }: OpenClaim,
  context: RegroupContext,
): boolean {
  if (consumer !== undefined) return false
  if (ofClass.hasMinValues || ofClass.hasReservations || hostPorts.length > 0) return false
  return pods.every((pod) => context.topology.isIndifferent(context.compiled.shapeOf(pod)))
}

function groupOf(ofClass: ClaimClass, claims: readonly OpenClaim[], { compiled }: RegroupContext): Group {
  const demanded = (claims[0] as OpenClaim).amounts.map((_, i) =>
    claims.some((claim) => (claim.amounts[i] as number) > 0) ? 1 : 0,
  )
  const reduced = (amounts: Float64Array) => amounts.filter((_, i) => demanded[i] === 1)
  const items = new Map<string, { amounts: Float64Array; count: number; pods: number[] }>()
  for (const { pods } of claims) {
    for (const pod of pods) {
      const amounts = reduced(compiled.shapeOf(pod).amounts)
      const key = amounts.join(' ')
      const item = items.get(key)
      if (item === undefined) items.set(key, { amounts, count: 1, pods: [pod] })
      else {
        item.count++
        item.pods.push(pod)
      }
    }
  }
  return {
    ...compiled.packings.binsOf(compiled.finisher.priced(ofClass), demanded),
    class: ofClass,
    claims,
    pricePerHour: costOf(claims, compiled.finisher).pricePerHour,
    items: [...items.values()].toSorted((a, b) => largerFirst(a.amounts, b.amounts)),
  }
}

/** The cost of the claims, each as its cheapest type. */
export function costOf(claims: readonly OpenClaim[], finisher: ClaimFinisher): PlanCost {
  return { nodes: claims.length, ...sumOfPrices(claims.map((claim) => finisher.priceOf(claim))) }
}

function largerFirst(a: Float64Array, b: Float64Array): number {
  for (let i = 0; i < a.length; i++) {
    const difference = (b[i] as number) - (a[i] as number)
    if (difference !== 0) return difference
  }
  return 0
}

/** @param model a claim with the same kind of pods. */
export function claimOf(
  { pods, class: ofClass }: PlannedBin,
  model: OpenClaim,
  compiled: CompiledProblem,
): OpenClaim {
  const amounts = new Float64Array(model.amounts.length)
  for (const pod of pods) addTo(amounts, compiled.shapeOf(pod).amounts)
  return {
    ...model,
    cheapest: 0,
    rise: undefined,
    class: ofClass,
    state: ofClass.state,
    amounts,
    pods: [...pods],
    minValuesRelaxed: false,
  }
}

function isAcceptable(
  renewed: readonly OpenClaim[],
  group: Group,
  { compiled: { finisher }, improvement, budgets }: RegroupContext,
): boolean {
  const budget = budgets.get(group.class.template) as PoolBudget
  const held = (claims: readonly OpenClaim[]) => claims.map((claim) => finisher.holding(claim))
  if (budget.isLimited && !budget.isNoMore(held(renewed), held(group.claims))) return false
  // A plan for free placement may cost more, as it is safe; uniformBins bounds its price.
  if (improvement === 'free') return true
  return isCheaper(costOf(renewed, finisher), costOf(group.claims, finisher))
}

/** The cheapest packing of a group whose pods will be nominated for their nodes. */
function plannedBins(
  group: Group,
  effort: Effort,
  packings: PackingCache,
): readonly PlannedBin[] | undefined {
  const packing = packings.pack(group.items, group, effort)
  if (packing === undefined) return undefined
  const taken = new Int32Array(group.items.length)
  return packing.bins.map(({ counts }) => ({
    class: group.class,
    pods: [...counts].flatMap((count, item) => {
      const from = taken[item] as number
      taken[item] = from + count
      return group.items[item]?.pods.slice(from, from + count) ?? []
    }),
  }))
}
