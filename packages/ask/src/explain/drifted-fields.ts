/** Which fields of a NodePool a NodeClaim is not as they want it. */
import { isDeepStrictEqual } from 'node:util'
import { type NodeClaim, type NodePool, ownValue } from '@tenon/api'
import { incompatibility, labelRequirements, parseRequirements } from '@tenon/engine'

const nothingUndefined: ReadonlySet<string> = new Set()
const compared = ['nodeClassRef', 'taints', 'startupTaints', 'expireAfter', 'terminationGracePeriod'] as const

/** Paths in the NodePool; empty when the difference is in the node class or in the cloud. */
export function driftedFields(claim: NodeClaim, { spec: { template } }: NodePool): readonly string[] {
  const own = claim.spec
  const fields = compared
    .filter((field) => !isDeepStrictEqual(withoutEmpty(own[field]), withoutEmpty(template.spec[field])))
    .map((field) => `spec.template.spec.${field}`)
  const labelled = labelRequirements(claim.metadata.labels ?? {})
  const wanted = parseRequirements(template.spec.requirements)
  const conflict = incompatibility(labelled, wanted, nothingUndefined)
  const keys =
    conflict === undefined
      ? []
      : conflict.kind === 'unknownLabel'
        ? [conflict.key]
        : conflict.conflicts.map(({ want }) => want.key)
  return [
    ...fields,
    ...keys.map((key) => `spec.template.spec.requirements (${key})`),
    ...missing(template.metadata?.labels, claim.metadata.labels).map(
      (key) => `spec.template.metadata.labels (${key})`,
    ),
    ...missing(template.metadata?.annotations, claim.metadata.annotations).map(
      (key) => `spec.template.metadata.annotations (${key})`,
    ),
  ]
}

/** No list and an empty one are the same; so is a lifetime that is not given, and the default. */
function withoutEmpty(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? undefined : value
}

function missing(
  wanted: Readonly<Record<string, string>> = {},
  found: Readonly<Record<string, string>> = {},
): readonly string[] {
  return Object.entries(wanted).flatMap(([key, value]) => (ownValue(found, key) === value ? [] : [key]))
}
