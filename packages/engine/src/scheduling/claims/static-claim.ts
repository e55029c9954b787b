/** Claims made from a NodePool alone, for no pod in particular (cluster-state.md 15.3). */
import type { Requirement, Taint } from '@tenon/api'
import type { PoolInput } from '../../input/input.ts'
import { requirementList } from '../../requirements/requirements.ts'
import { customLabels } from './finished-claims.ts'
import { TypeReader } from '../types/instance-rows.ts'
import { compilePool, simulationOnlyLabels } from './pool-template.ts'

/** What a NodePool says of its nodes, as a claim states it. */
export interface TemplateClaim {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: readonly Requirement[]
}

/**
 * The claim that the template alone gives: its requirements and labels, neither narrowed to instance
 * types nor to capacity types.
 * @param wellKnown label keys that providers fill in; other keys get a concrete value as a label.
 * @throws RangeError or TypeError when the NodePool is malformed.
 */
export function templateClaim(
  input: Pick<PoolInput, 'nodePool' | 'defaults'>,
  wellKnown: ReadonlySet<string>,
): TemplateClaim {
  const pool = compilePool({ ...input, instanceTypes: [], usage: {} }, new TypeReader(), () => undefined)
  const requirements = new Map(pool.requirements)
  for (const key of simulationOnlyLabels) requirements.delete(key)
  return {
    labels: { ...customLabels(requirements, wellKnown), ...pool.labels },
    taints: pool.taints,
    requirements: requirementList(requirements),
  }
}
