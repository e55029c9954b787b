/** Drift of claims whose instance type is no longer on offer (lifecycle.md 9). */
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import {
  capacityTypes,
  type InstanceType,
  labels,
  type NodeClaim,
  type NodePool,
  wellKnownLabels,
} from '@tenon/api'
import {
  compatible,
  labelRequirements,
  oneOf,
  parseRequirements,
  type Requirements,
  requirementsOf,
} from '@tenon/engine'

interface Dependencies {
  readonly provider: Pick<CloudProvider, 'getInstanceTypes' | 'reservationLabel' | 'wellKnownLabels'>
  readonly clock: Pick<Clock, 'now'>
}

/** Offers that come and go while a fleet launches say nothing about young claims. */
const leastAgeMs = 60 * 60_000
const foundTtlMs = 30 * 60_000

/** Asks the provider's catalogue for the types of claims, each seldom. */
export class InstanceTypeDrift {
  readonly #deps: Dependencies
  /** Until when a claim's type need not be looked for again, by UID; the first to end first. */
  readonly #foundUntilMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns the drift reason, or undefined. */
  async reasonFor(claim: NodeClaim, pool: NodePool, signal: AbortSignal): Promise<string | undefined> {
    const { clock, provider } = this.#deps
    const now = clock.now()
    const { uid = '', creationTimestamp = '' } = claim.metadata
    const isYoung = now - Date.parse(creationTimestamp) <= leastAgeMs
    if (isYoung || (this.#foundUntilMs.get(uid) ?? 0) > now) return undefined
    const types = await provider.getInstanceTypes(pool, signal)
    if (!this.#isOffered(claim, types)) return 'InstanceTypeNotFound'
    this.#sweep(now)
    this.#foundUntilMs.delete(uid)
    this.#foundUntilMs.set(uid, now + foundTtlMs)
    return undefined
  }

  #isOffered(claim: NodeClaim, types: readonly InstanceType[]): boolean {
    const { provider } = this.#deps
    const { reservationLabel } = provider
    const tags = claim.metadata.labels ?? {}
    const type = types.find(({ name }) => name === tags[labels.instanceType])
    const own = ownRequirements(tags, reservationLabel)
    const mayBeUndefined = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
    if (reservationLabel !== undefined) mayBeUndefined.add(reservationLabel)
    return (
      type?.offerings.some(({ requirements }) =>
        compatible(own, parseRequirements(requirements), mayBeUndefined),
      ) ?? false
    )
  }

  #sweep(now: number): void {
    for (const [uid, untilMs] of this.#foundUntilMs) {
      if (untilMs > now) return
      this.#foundUntilMs.delete(uid)
    }
  }
}

/** The claim's labels; a reservation that ended leaves an instance that is worth keeping on demand. */
function ownRequirements(
  tags: Readonly<Record<string, string>>,
  reservationLabel: string | undefined,
): Requirements {
  const own = labelRequirements(tags)
  if (tags[labels.capacityType] !== capacityTypes.reserved) return own
  return requirementsOf([
    ...[...own.values()].filter(({ key }) => key !== reservationLabel && key !== labels.capacityType),
    oneOf(labels.capacityType, capacityTypes.reserved, capacityTypes.onDemand),
  ])
}
