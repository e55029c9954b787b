import { labels, wellKnownLabels } from '@tenon/api'
import type { PoolRules } from '@tenon/provider'
import { instanceLabels, providerDomain } from '../names.ts'

/** Labels with which NodePools and pods may select MachineDeployments (cluster-api.md 1). */
export const poolRules: Required<Pick<PoolRules, 'wellKnownLabels' | 'restrictedDomains'>> = {
  wellKnownLabels: Object.values(instanceLabels),
  restrictedDomains: [providerDomain],
}

/** Labels that nodes only get from MachineDeployments, never from a NodePool. */
export const describedLabels: readonly string[] = [
  ...wellKnownLabels.filter((key) => key !== labels.nodePool),
  ...poolRules.wellKnownLabels,
]
