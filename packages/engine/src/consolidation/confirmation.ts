/** Whether a move that was planned some time ago is still possible (disruption.md 13). */
import { type InstanceType, type Pod, type PricePerHour, sumOfPrices } from '@tenon/api'
import type { NewClaim } from '../input/result.ts'
import { parseRequirements } from '../requirements/requirements.ts'
import { highestPrice, worstLaunchPrice } from '../scheduling/types/allocatable.ts'
import type { PlannedMove, RemovalResult } from './answer.ts'

/**
 * Whether the pods of the removed nodes still fit as planned.
 * @param removal the result of a new simulation.
 * @param moving the pods that must move, for a move that first fit cannot reproduce: it is enough that they fit
 * anywhere. Undefined for other moves.
 */
export function isConfirmed(
  move: Pick<PlannedMove, 'claims'>,
  removal: Pick<RemovalResult, 'claims' | 'stranded'>,
  moving: readonly Pod[] | undefined,
): boolean {
  if (removal.stranded.length > 0) return false
  return moving === undefined ? isSame(removal.claims, move.claims) : isCovered(removal.claims, move, moving)
}

function isSame(now: readonly NewClaim[], planned: readonly NewClaim[]): boolean {
  const offered = new Set(now.flatMap(({ instanceTypes }) => instanceTypes))
  return (
    now.length === planned.length &&
    planned.every(({ instanceTypes }) => instanceTypes.every((name) => offered.has(name)))
  )
}

/**
 * Whether the simulation launches nodes only for pods for which the plan launches them. How it packs these
 * pods, and at which price, does not matter.
 */
function isCovered(
  now: readonly NewClaim[],
  move: Pick<PlannedMove, 'claims'>,
  moving: readonly Pod[],
): boolean {
  if (move.claims.length === 0) return now.length === 0
  const planned = new Set(uidsOf(move.claims))
  const needy = new Set(uidsOf(now))
  return moving.every(({ metadata: { uid = '' } }) => !needy.has(uid) || planned.has(uid))
}

function uidsOf(claims: readonly NewClaim[]): readonly string[] {
  return claims.flatMap(({ pods }) => pods.map(({ metadata }) => metadata.uid ?? ''))
}

/** What NodePools offer now, by name of the NodePool and of the type. */
export type SoldTypes = ReadonlyMap<string, { readonly types: ReadonlyMap<string, InstanceType> }>

/**
 * Whether the claims cost less than the removed nodes, whichever of their types is launched. False when a price is
 * unknown.
 * @param before the price per hour of the removed nodes.
 */
export function isCheaper(
  claims: readonly Pick<NewClaim, 'nodePool' | 'instanceTypes' | 'requirements'>[],
  before: readonly PricePerHour[],
  sold: SoldTypes,
  wellKnown: ReadonlySet<string>,
): boolean {
  const dearest = claims.map(({ nodePool, instanceTypes, requirements }) => {
    const types = sold.get(nodePool)?.types
    const wanted = parseRequirements(requirements)
    const prices = instanceTypes.map((name) => {
      const type = types?.get(name)
      return type && worstLaunchPrice(type, wanted, wellKnown)
    })
    return highestPrice(prices)
  })
  const most = sumOfPrices(dearest)
  return most.unpriced === 0 && most.pricePerHour < sumOfPrices(before).pricePerHour
}
