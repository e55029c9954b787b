/** Instances that disappear, and kubelets that stop reporting, return with another name, or reject labels. */
import { karpenterKinds } from '@tenon/api'
import { integerBetween, type Random } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { Story } from '../story.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000

/** Decides once a minute whether a fault strikes. Call the result to stop. */
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
    if (weather.strikes('renamedKubelet')) {
      const names = world.cluster.kubelets.running()
      const random = weather.source('renamedKubelet')
      const name = names[random.uint32() % Math.max(1, names.length)]
      if (name !== undefined) {
        log.record('fault', `renamedKubelet ${name}`)
        world.cluster.kubelets.rename(name, `${name}-again`)
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

/** Labels that kubelets may not set. */
export const kubeletLabels: Readonly<Record<string, string>> = {
  'node-role.kubernetes.io/worker': '',
  'example.k8s.io/team': 'world',
  'topology.kubernetes.io/rack': 'r1',
  'node-restriction.kubernetes.io/tenant': 'world',
}

export const isRefusedByKubelets = (key: string): boolean => Object.hasOwn(kubeletLabels, key)

/** In half of the seeds all NodePools have labels that a kubelet may not set. */
export function labelPools(world: World, { faults, withoutFaults }: Story, random: Random): void {
  if (faults === 'none' || withoutFaults.includes('kubeletLabels') || random.uint32() % 2 === 0) return
  const { local } = world.cluster.server
  for (const { metadata } of local.list(karpenterKinds.nodePool))
    local.patch(karpenterKinds.nodePool, undefined, metadata.name, {
      spec: { template: { metadata: { labels: kubeletLabels } } },
    })
}
