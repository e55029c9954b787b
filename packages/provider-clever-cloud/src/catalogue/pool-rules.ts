import type { PoolRules } from '@tenon/provider'
import { ownNames, platformLabels, providerDomain } from '../names.ts'

/** Labels with which NodePools and pods may select flavors (clever-cloud.md 4). */
export const poolRules: Required<Pick<PoolRules, 'wellKnownLabels' | 'restrictedDomains'>> = {
  wellKnownLabels: [
    ownNames.instanceCpu,
    ownNames.instanceMemory,
    platformLabels.flavor,
    platformLabels.role,
  ],
  restrictedDomains: [providerDomain],
}
