/** The clouds that a story can run in. */
import { decorated, type RepairPolicy } from '@tenon/provider'
import type { Random } from '@tenon/runtime'
import type { World, WorldOptions } from '../../world.ts'
import { usualCloud } from '../faults/cloud-faults.ts'
import { usualHub } from '../faults/hub-faults.ts'
import { usualPlatform } from '../faults/platform-faults.ts'
import type { Pace } from '../pace.ts'
import { cloudOfStory, type Story } from '../story.ts'
import { ailment } from '../workload/wanted.ts'
import { cleverCloudIn } from './clever-cloud.ts'
import { clusterApiIn } from './cluster-api.ts'
import { exoscaleIn } from './exoscale.ts'
import type { CloudDeps, WorldCloud } from './world-cloud.ts'

/**
 * The initial settings of a story's cloud.
 * @param guests determines how much memory guests see.
 */
export function cloudSetup(
  story: Story,
  pace: Pace,
  guests: Random,
): Pick<WorldOptions, 'provider' | 'cloudSettings' | 'cleverCloud' | 'clusterApi'> {
  if (cloudOfStory(story) === 'clever-cloud')
    return {
      provider: 'clever-cloud',
      cloudSettings: pace.cloud,
      cleverCloud: { settings: usualPlatform(story, guests) },
    }
  if (cloudOfStory(story) === 'cluster-api')
    return { provider: 'cluster-api', cloudSettings: pace.cloud, clusterApi: { settings: usualHub } }
  return { provider: 'exoscale', cloudSettings: { ...usualCloud(story, guests), ...pace.cloud } }
}

/** The cloud of a story's world. */
export function cloudIn(world: World, story: Story, deps: CloudDeps): WorldCloud {
  const isWanted = story.withWorkloads?.includes('wanted') === true
  switch (cloudOfStory(story)) {
    case 'clever-cloud':
      return isWanted ? repairsAilments(cleverCloudIn(world)) : cleverCloudIn(world)
    case 'cluster-api':
      return isWanted ? repairsAilments(clusterApiIn(world, true)) : clusterApiIn(world, false)
    case 'exoscale':
      return exoscaleIn(world, deps)
  }
}

/** Repairs what Exoscale repairs, as a cloud may whose nodes somebody watches for problems. */
function repairsAilments(cloud: WorldCloud): WorldCloud {
  const policy: RepairPolicy = { conditionType: ailment, conditionStatus: 'True', tolerationMs: 5 * 60_000 }
  return {
    ...cloud,
    openProvider: async (parts) => {
      const opened = await cloud.openProvider(parts)
      return decorated(opened, { repairPolicies: [...opened.repairPolicies, policy] })
    },
  }
}
