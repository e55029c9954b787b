/** Drift that shows in the objects alone (lifecycle.md 9). */
import { annotations, type NodeClaim, type NodePool } from '@tenon/api'
import { incompatibility, labelRequirements, parseRequirements } from '@tenon/engine'
import { perObject } from '@tenon/runtime'

const nothingUndefined: ReadonlySet<string> = new Set()

const knownDrift = perObject((claim: NodeClaim) =>
  perObject((pool: NodePool): string | null => staticDriftOf(claim, pool) ?? null),
)

/** Drift that the objects alone show. Memoized, as both rarely change between checks. */
export function staticDrift(claim: NodeClaim, pool: NodePool): string | undefined {
  return knownDrift(claim)(pool) ?? undefined
}

function staticDriftOf(claim: NodeClaim, pool: NodePool): string | undefined {
  const own = claim.metadata.annotations ?? {}
  const current = pool.metadata.annotations ?? {}
  const hash = own[annotations.nodePoolHash]
  const version = own[annotations.nodePoolHashVersion]
  const poolHash = current[annotations.nodePoolHash]
  const isComparable = hash !== undefined && poolHash !== undefined && version !== undefined
  if (isComparable && version === current[annotations.nodePoolHashVersion] && hash !== poolHash)
    return 'NodePoolDrifted'
  const wanted = parseRequirements(pool.spec.template.spec.requirements)
  const labelled = labelRequirements(claim.metadata.labels ?? {})
  return incompatibility(labelled, wanted, nothingUndefined) === undefined ? undefined : 'RequirementsDrifted'
}
