/** Claims that may exchange pods, and the bins of their new plan. */
import type { ClaimClass } from '../claims/claim-class.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { BinList } from './packing-cache.ts'
import type { Item } from './resource-prices.ts'

/** Pods with equal requests. */
interface SizedPods extends Item {
  /** Largest first, then oldest, as the simulation placed them. */
  readonly pods: readonly number[]
}

/** Claims of one class whose pods may be mixed. */
export interface Group extends BinList {
  readonly class: ClaimClass
  readonly claims: readonly OpenClaim[]
  readonly pricePerHour: number
  readonly items: readonly SizedPods[]
}

/** A bin of a new plan: its pods, and the class of its claim. */
export interface PlannedBin {
  readonly pods: readonly number[]
  readonly class: ClaimClass
}
