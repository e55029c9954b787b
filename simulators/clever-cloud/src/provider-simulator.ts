/** The simulated Clever Cloud as `tenon up` and `tenon devcluster` use it. */
import type { ProviderSimulator } from '@tenon/provider'
import { defaultRegion } from '@tenon/provider-clever-cloud'
import { inside, outside } from './control-plane.ts'
import { demonstration, tourNodeClass, tourNodePool, tourTeamPool } from './manifests.ts'
import { pricePerHour, priceUnit } from './prices.ts'
import type { CleverCloudSettings } from './settings.ts'
import { cleverCloudSimulator } from './clever-cloud.ts'

/** Short delays for demonstrations, and a raised quota. */
const hurried: Partial<CleverCloudSettings> = {
  answerDelay: { minMs: 300, maxMs: 600 },
  nodeDelay: { minMs: 3_000, maxMs: 4_500 },
  syncDelay: { minMs: 6_000, maxMs: 8_000 },
  powerOffDelay: { minMs: 500, maxMs: 1_000 },
  nodesReportPowerOff: true,
  deletionDelay: { minMs: 2_000, maxMs: 3_000 },
  emptyDeletionDelay: { minMs: 200, maxMs: 500 },
  quota: { cpu: 120, memoryGb: 120 },
}

/** A cluster of a new organisation. Its control plane is part of it, except in demonstrations. */
export const simulator: ProviderSimulator = {
  cloud: ({ bootDelayMs, isHurried = false }) => {
    const platform = cleverCloudSimulator({
      controlPlane: isHurried ? outside : inside,
      settings: {
        ...(isHurried && hurried),
        ...(bootDelayMs !== undefined && {
          nodeDelay: { minMs: bootDelayMs, maxMs: bootDelayMs },
          syncDelay: { minMs: bootDelayMs, maxMs: bootDelayMs },
        }),
      },
    })
    return {
      ...platform,
      start: (parts) => {
        const cloud = platform.start(parts)
        return { priceUnit, instances: () => cloud.instances(), stop: () => cloud.stop() }
      },
    }
  },
  settings: () => ({ CLEVER_CLOUD_REGION: defaultRegion }),
  demonstration,
  tour: {
    cluster: 'CKE cluster',
    nodeClass: tourNodeClass,
    nodePool: tourNodePool,
    whyReady: 'its labels may be used, and the cluster serves NodeGroups',
    smallType: '2XS',
    smallInstances: 2,
    priceOf: pricePerHour,
    team: { manifests: tourTeamPool },
    readOn: 'docs/clever-cloud/',
  },
}
