/** Which NodeOverlays apply, and which are invalid or in conflict (scheduling.md 13.4). */
import type { NodeOverlay, NodePool } from '@tenon/api'
import type { EligibilityPolicy } from '../eligibility/lookups.ts'
import {
  type CompiledOverlay,
  type CompiledPool,
  compileOverlay,
  compilePool,
  type Match,
  matchOf,
  type OfferedPool,
  type Setting,
  typeCompiler,
  type TypeSettings,
} from './matching.ts'
import type { TypeOverlay } from './overlaid-type.ts'
import { currencyProblems, type OverlayProblem, overlayProblems } from './validation.ts'

/** Two overlays of equal weight that set the same field. */
export interface OverlayConflict {
  /** The other overlay, which applies. */
  readonly with: string
  readonly nodePool: string
  readonly instanceType: string
  /** The resource that both set; absent = the price. */
  readonly resource?: string
}

/** The result for one overlay. */
export type OverlayOutcome =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly problems: readonly OverlayProblem[] }
  | ({ readonly kind: 'conflict' } & OverlayConflict)

/** What the valid overlays change, by name of the instance type. */
export type PoolOverlays = ReadonlyMap<string, TypeOverlay>

export interface OverlayEvaluation {
  readonly outcomes: ReadonlyMap<NodeOverlay, OverlayOutcome>
  /** Contains every pool of the input. Equal changes of a type are one object. */
  readonly byPool: ReadonlyMap<NodePool, PoolOverlays>
}

/** Highest weight first, then names in descending order. */
function strongestFirst(a: NodeOverlay, b: NodeOverlay): number {
  return weightOf(b) - weightOf(a) || (a.metadata.name < b.metadata.name ? 1 : -1)
}

function weightOf({ spec }: NodeOverlay): number {
  return spec.weight ?? 0
}

/**
 * Evaluates overlays from the highest weight to the lowest. An overlay in conflict anywhere applies nowhere.
 * Otherwise the higher weight wins, for each offering and each resource.
 */
export function* evaluateOverlaysInSteps(
  overlays: readonly NodeOverlay[],
  offered: readonly OfferedPool[],
  policy: EligibilityPolicy,
): Generator<undefined, OverlayEvaluation, undefined> {
  const outcomes = new Map<NodeOverlay, OverlayOutcome>()
  const pools = offered.map(compilePool)
  const typeOf = typeCompiler()
  for (const overlay of overlays.toSorted(strongestFirst)) {
    const problems = overlayProblems(overlay, policy)
    if (problems.length > 0) {
      outcomes.set(overlay, { kind: 'invalid', problems })
      continue
    }
    const compiled = compileOverlay(overlay, policy)
    const matches: Match[] = []
    const matched: CompiledPool[] = []
    for (const pool of pools) {
      yield
      for (const type of pool.instanceTypes) {
        const match = matchOf(compiled, pool, type, typeOf, policy)
        if (match === undefined) continue
        matches.push(match)
        if (matched.at(-1) !== pool) matched.push(pool)
      }
    }
    const unpriced = currencyProblems(overlay, matched)
    if (unpriced.length > 0) {
      outcomes.set(overlay, { kind: 'invalid', problems: unpriced })
      continue
    }
    const conflict = firstConflict(compiled, matches)
    if (conflict === undefined) for (const match of matches) record(compiled, match)
    outcomes.set(overlay, conflict === undefined ? { kind: 'valid' } : { kind: 'conflict', ...conflict })
  }
  return { outcomes, byPool: poolOverlays(pools) }
}

function firstConflict(compiled: CompiledOverlay, matches: readonly Match[]): OverlayConflict | undefined {
  const { overlay, price, capacity } = compiled
  const rival = (setting: Setting<unknown> | undefined) =>
    setting !== undefined && weightOf(setting.by) === weightOf(overlay) ? setting.by.metadata.name : undefined
  for (const { nodePool, instanceType, settings, offerings } of matches) {
    for (const offering of price === undefined ? [] : offerings) {
      const other = rival(settings.prices.get(offering))
      if (other !== undefined) return { with: other, nodePool, instanceType }
    }
    for (const resource in capacity) {
      const other = rival(settings.resources.get(resource))
      if (other !== undefined) return { with: other, nodePool, instanceType, resource }
    }
  }
  return undefined
}

/**
 * Keeps the value of the overlay with the higher weight, but remembers this one as the last, for the next
 * comparison.
 */
function record({ overlay, price, capacity }: CompiledOverlay, { settings, offerings }: Match): void {
  const { prices, resources } = settings
  if (price !== undefined)
    for (const key of offerings) prices.set(key, { value: prices.get(key)?.value ?? price, by: overlay })
  for (const [name, amount] of Object.entries(capacity))
    resources.set(name, { value: resources.get(name)?.value ?? amount, by: overlay })
}

function poolOverlays(pools: readonly CompiledPool[]): ReadonlyMap<NodePool, PoolOverlays> {
  const known = new Map<string, TypeOverlay>()
  const shared = ({ prices, resources }: TypeSettings): TypeOverlay => {
    const values = <T>(settings: ReadonlyMap<string, Setting<T>>) =>
      Array.from(settings, ([key, { value }]) => [key, value] as const).toSorted(([a], [b]) =>
        a < b ? -1 : 1,
      )
    const [priceList, capacityList] = [values(prices), values(resources)]
    const key = JSON.stringify([priceList, capacityList])
    let overlay = known.get(key)
    if (overlay === undefined) {
      overlay = { capacity: Object.fromEntries(capacityList), priceByOffering: new Map(priceList) }
      known.set(key, overlay)
    }
    return overlay
  }
  const changed = ({ prices, resources }: TypeSettings) => prices.size + resources.size > 0
  return new Map(
    pools.map(({ nodePool, settings }) => {
      const entries = Array.from(settings).filter(([, each]) => changed(each))
      return [nodePool, new Map(entries.map(([name, each]) => [name, shared(each)]))]
    }),
  )
}

/** One sentence that names both overlays, what they both set, and the fix. */
export function renderOverlayConflict({
  with: other,
  nodePool,
  instanceType,
  resource,
}: OverlayConflict): string {
  const what = resource === undefined ? 'the price' : `resource ${resource}`
  return `NodeOverlay ${other} of the same weight sets ${what} of ${instanceType} in NodePool ${nodePool} already; set a higher weight on one of them, or narrow its requirements`
}
