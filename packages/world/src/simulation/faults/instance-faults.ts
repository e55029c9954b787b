/** Instances that disappear, and kubelets that stop reporting. */
import { integerBetween } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000

/** Looks once a minute whether something strikes. Call the result to stop. */
export function playInstanceFaults(
  world: World,
  cloud: Pick<WorldCloud, 'loseOne'>,
  { weather, clock, log }: FaultDependencies,
): () => void {
  let isStopped = false
  const step = (): void => {
    if (isStopped) return
    if (weather.strikes('instanceDeath')) {
      const victim = cloud.loseOne(weather.source('instanceDeath'))
      if (victim !== undefined) log.record('fault', `instanceDeath ${victim}`)
    }
    if (weather.strikes('silentKubelet')) {
      const names = world.cluster.kubelets.running()
      const random = weather.source('silentKubelet')
      const name = names[random.uint32() % Math.max(1, names.length)]
      const ms =
        random.uint32() % 2 === 0
          ? integerBetween(random, 20_000, 60_000)
          : integerBetween(random, 2 * minute, 15 * minute)
      if (name !== undefined) {
        log.record('fault', `silentKubelet ${name} ${ms}`)
        world.cluster.kubelets.silence(name, ms)
      }
    }
    clock.after(minute, step)
  }
  clock.after(minute, step)
  return () => {
    isStopped = true
    for (const name of world.cluster.kubelets.running()) world.cluster.kubelets.silence(name, 0)
  }
}
