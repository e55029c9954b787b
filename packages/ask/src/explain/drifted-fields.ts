/** In which fields a NodeClaim differs from its NodePool. */
import { isDeepStrictEqual } from 'node:util'
import { type NodeClaim, type NodePool, ownValue } from '@tenon/api'
import { incompatibility, labelRequirements, parseRequirements } from '@tenon/engine'

const nothingUndefined: ReadonlySet<string> = new Set()
const compared = ['nodeClassRef', 'taints', 'startupTaints', 'expireAfter', 'terminationGracePeriod'] as const

/** Paths in the NodePool; empty if the claim drifted because of its node class or its instance. */
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

/** Treats a missing list as empty, and a missing lifetime as the default. */
function withoutEmpty(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? undefined : value
}

function missing(
  wanted: Readonly<Record<string, string>> = {},
  found: Readonly<Record<string, string>> = {},
): readonly string[] {
  return Object.entries(wanted).flatMap(([key, value]) => (ownValue(found, key) === value ? [] : [key]))
}
