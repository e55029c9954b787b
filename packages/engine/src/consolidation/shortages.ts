/** Unavailable offerings that would replace a node for less (disruption.md 10). */
import { capacityTypes, undeclaredFeatures } from '@tenon/api'
import type { PodShape } from '../scheduling/pods/pod-shape.ts'
import { limitsOf, PoolBudget } from '../scheduling/claims/pool-budget.ts'
import type { CompiledPool } from '../scheduling/claims/pool-template.ts'
import { addTo, type Amounts, amountsFit } from '../scheduling/pods/resource-space.ts'
import { portsClash } from '../input/host-ports.ts'
import type { Simulation } from '../scheduling/simulation.ts'
import { allowsNewHost } from '../scheduling/topology/node-filter.ts'
import { untolerated } from '../scheduling/pods/taints.ts'
import { suiting, unavailableOfferings, type UnavailableRow } from '../scheduling/claims/unavailable-rows.ts'
import type { UnavailableOffering } from '../reasons/reasons.ts'
import { compatible } from '../requirements/requirements.ts'
import type { StateId } from '../requirements/states.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** Finds unavailable offerings that could hold all pods that need a new node on one node. */
export class Shortages {
  readonly #whatIf: WhatIf
  /** NodePools with unavailable offerings. */
  readonly #pools: readonly CompiledPool[]
  readonly #suiting = new Map<CompiledPool, Map<StateId, readonly UnavailableRow[]>>()

  constructor(whatIf: WhatIf) {
    const { compiled } = whatIf
    this.#whatIf = whatIf
    this.#pools = [
      ...compiled.templates.map((template) => compiled.poolOf(template)),
      ...compiled.emptyPools,
    ].filter((pool) => compiled.unavailableRows(pool).length > 0)
  }

  /**
   * @param price per hour of the candidate: offerings that cost as much, or have no known price, are not returned.
   * @param spotToSpot whether spot may replace spot.
   */
  of(
    candidate: Candidate,
    { claims }: Simulation,
    { price, spotToSpot }: { readonly price: number; readonly spotToSpot: boolean },
  ): readonly UnavailableOffering[] {
    if (this.#pools.length === 0 || claims.length === 0) return []
    const pods = claims.flatMap((claim) => claim.pods)
    // Topology rules may need several nodes, so one node need not hold all pods.
    if (claims.length > 1 && !pods.every((pod) => this.#whatIf.isPlain(pod))) return []
    const { compiled } = this.#whatIf
    const shapes = [...new Set(pods.map((pod) => compiled.shapeOf(pod)))]
    const amounts = new Float64Array(compiled.space.size)
    for (const claim of claims) addTo(amounts, claim.amounts)
    const isSpot = candidate.input.capacityType === capacityTypes.spot
    const short = this.#pools.flatMap((pool) =>
      this.#holding(pool, shapes, amounts, [candidate]).filter(
        ({ pricePerHour }) => pricePerHour !== undefined && pricePerHour < price,
      ),
    )
    const offerings = unavailableOfferings(short)
    return isSpot && !spotToSpot
      ? offerings.filter(({ capacityType }) => capacityType !== capacityTypes.spot)
      : offerings
  }

  /** Unavailable offerings of a pool that could hold all the pods on one node. */
  #holding(
    pool: CompiledPool,
    shapes: readonly PodShape[],
    amounts: Amounts,
    gone: readonly Candidate[],
  ): readonly UnavailableRow[] {
    const state = this.#stateWith(pool, shapes)
    if (state === undefined) return []
    const index = this.#whatIf.compiled.problem.pools.indexOf(pool.input)
    const budget = new PoolBudget(limitsOf(pool.input.nodePool, this.#whatIf.usageWithout(index, gone)), [])
    const ports = shapes.flatMap(({ hostPorts }) => hostPorts)
    return this.#suitingIn(pool, state).filter(
      ({ type, room, daemons }) =>
        amountsFit(amounts, room) &&
        budget.allows(type) &&
        (ports.length === 0 || !portsClash(ports, daemons.ports)),
    )
  }

  #suitingIn(pool: CompiledPool, state: StateId): readonly UnavailableRow[] {
    const { compiled } = this.#whatIf
    const byState = this.#suiting.get(pool) ?? new Map<StateId, readonly UnavailableRow[]>()
    this.#suiting.set(pool, byState)
    let known = byState.get(state)
    if (known === undefined) {
      const { wellKnownLabels } = compiled.problem.policy
      known = suiting(compiled.unavailableRows(pool), compiled.states.get(state), wellKnownLabels)
      byState.set(state, known)
    }
    return known
  }

  /** The requirements of a node of the pool with all these pods; undefined when they conflict. */
  #stateWith(pool: CompiledPool, shapes: readonly PodShape[]): StateId | undefined {
    const { states, problem } = this.#whatIf.compiled
    const admits = (have: StateId, wish: StateId) =>
      compatible(states.get(have), states.get(wish), problem.policy.wellKnownLabels)
    let state = states.idOf(pool.requirements)
    for (const { strict, tolerations, features, volumes } of shapes) {
      if (strict.host !== undefined && !allowsNewHost(strict.host)) return undefined
      if (undeclaredFeatures(features, pool.input.declaredFeatures).length > 0) return undefined
      if (untolerated(pool.taints, tolerations).length > 0 || !admits(state, strict.state)) return undefined
      const withPod = states.merge(state, strict.state)
      const volume = volumes.find((wish) => admits(withPod, wish.state))
      if (volume === undefined) return undefined
      state = states.merge(withPod, volume.state)
    }
    return state
  }
}
