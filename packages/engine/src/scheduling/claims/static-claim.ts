/** Claims that are made from a NodePool without pods (cluster-state.md 15.3). */
import type { Requirement, Taint } from '@tenon/api'
import type { PoolInput } from '../../input/input.ts'
import { requirementList } from '../../requirements/requirements.ts'
import { customLabels } from './finished-claims.ts'
import { TypeReader } from '../types/instance-rows.ts'
import { compilePool, simulationOnlyLabels } from './pool-template.ts'

/** The fields of a claim that come from its NodePool. */
export interface TemplateClaim {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: readonly Requirement[]
}

/**
 * The claim of the template alone: its requirements and labels, not narrowed to instance types or capacity types.
 * @param wellKnown label keys that providers set; other keys get one value as a label.
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
