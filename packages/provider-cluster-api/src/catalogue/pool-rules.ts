import { labels, wellKnownLabels } from '@tenon/api'
import type { PoolRules } from '@tenon/provider'
import { instanceLabels, providerDomain } from '../names.ts'

/** Labels that NodePools and pods may choose MachineDeployments by (cluster-api.md 1). */
export const poolRules: Required<Pick<PoolRules, 'wellKnownLabels' | 'restrictedDomains'>> = {
  wellKnownLabels: Object.values(instanceLabels),
  restrictedDomains: [providerDomain],
}

/** Labels of which only MachineDeployments tell whether nodes have them: a NodePool does not add them to nodes. */
export const describedLabels: readonly string[] = [
  ...wellKnownLabels.filter((key) => key !== labels.nodePool),
  ...poolRules.wellKnownLabels,
]
