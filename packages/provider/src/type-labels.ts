import { type InstanceType, labels, wellKnownLabels } from '@tenon/api'

/** Label keys by which instance types differ and which the core does not know. */
export function labelsBeyondTheCore(types: readonly InstanceType[]): readonly string[] {
  const keys = new Set(
    types.flatMap(({ requirements, offerings }) =>
      [...requirements, ...offerings.flatMap((offering) => offering.requirements)].map(({ key }) => key),
    ),
  )
  return [...keys].filter((key) => !wellKnownLabels.includes(key) && key !== labels.hostname)
}
