import type { PoolRules } from '@tenon/provider'
import { ownNames, platformLabels, providerDomain } from '../names.ts'

/** Labels that NodePools and pods may choose flavors by (clever-cloud.md 4). */
export const poolRules: Required<Pick<PoolRules, 'wellKnownLabels' | 'restrictedDomains'>> = {
  wellKnownLabels: [
    ownNames.instanceCpu,
    ownNames.instanceMemory,
    platformLabels.flavor,
    platformLabels.role,
  ],
  restrictedDomains: [providerDomain],
}
