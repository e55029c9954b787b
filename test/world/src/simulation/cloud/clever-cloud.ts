/** The simulated Clever Cloud in a simulation. */
import { isConditionTrue, type KubeObject, type Node } from '@tenon/api'
import {
  cleverNodeClassKind,
  type NodeGroup,
  nodeGroupKind,
  openCleverCloud,
  ownNames,
  platformLabels,
} from '@tenon/provider-clever-cloud'
import type { World } from '../../world.ts'
import { isPrivate, playPlatformFaults } from '../faults/platform-faults.ts'
import type { CloudInstance, Wares, WorldCloud } from './world-cloud.ts'

const collection = '/apis/api.clever-cloud.com/v1/nodegroups'

/** Provider ID of a group's node. */
export const providerIdOf = (group: string): string => `clevercloud://${group}`

/** Relative to a 2XS: the platform no longer publishes prices (clever-cloud.md 20). */
const prices: ReadonlyMap<string, number> = new Map([
  ['2XS', 1],
  ['XS', 1.8527],
  ['S', 2.7044],
  ['M', 3.5582],
  ['L', 5.0873],
  ['XL', 6.783],
])

const wares: Wares = {
  nodeClassKind: cleverNodeClassKind,
  nodeClass(name) {
    const object: KubeObject & { readonly spec: object } = {
      apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
      kind: 'CleverNodeClass',
      metadata: { name },
      spec: { labels: { 'world.tenon.sh/cloud': 'clever' } },
    }
    return object
  },
  types: ['2XS', 'XS', 'S', 'M'],
  typesInLarge: 2,
  staticType: 'XS',
  choosyTypes: ['XS', 'S'],
  gpuTypes: [],
  drift: (person) => {
    const team = person.dice.oneOf(['red', 'green', 'blue'])
    person.patch(cleverNodeClassKind, 'standard', { spec: { labels: { 'world.tenon.sh/team': team } } })
  },
}

const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

/** Whether the platform has rejected the group. */
export function isRefused(group: NodeGroup): boolean {
  if (isConditionTrue(group, 'Ready')) return false
  const failure = group.status?.conditions?.find(
    ({ type, status }) => type === 'ReconcileFailed' && status === 'True',
  )
  return (
    group.status?.phase === 'QuotaExceeded' || (failure !== undefined && failure.reason !== 'UpstreamError')
  )
}

/** The cloud of a world with the provider `clever-cloud`. */
export function cleverCloudIn(world: World): WorldCloud {
  const { local } = world.cluster.server
  const groupByName = (name: string): NodeGroup | undefined => local.get(nodeGroupKind, undefined, name)
  const own = (): readonly NodeGroup[] => world.nodeGroups().filter((group) => !isPrivate(group))
  return {
    wares,
    prices,
    objects: nodeGroupKind,
    openProvider: async (parts) =>
      await openCleverCloud({
        ...parts,
        env: {},
        cloud: { fenced: (transport) => transport, userAgent: 'karpenter/world' },
      }),
    // A group that is being deleted counts as gone: the platform waits for its Node, which would wait for the group.
    instances: () =>
      own()
        .filter((group) => !isLeaving(group))
        .map(
          ({ metadata, status }): CloudInstance => ({
            id: metadata.name,
            providerId: providerIdOf(metadata.name),
            claim: metadata.labels?.[ownNames.nodeClaim] ?? '',
            state: status?.phase ?? 'new',
            isAlive: true,
          }),
        ),
    demandOf({ method, path, body }) {
      if (!path.startsWith(collection)) return undefined
      if (method === 'POST') {
        const { metadata } = JSON.parse(String(body)) as KubeObject
        return { launchFor: metadata.labels?.[ownNames.nodeClaim] ?? '' }
      }
      const name = (path.split('?')[0] ?? '').slice(collection.length + 1)
      const group = method === 'DELETE' ? groupByName(name) : undefined
      // A rejected group has no instance.
      if (group === undefined || isLeaving(group) || isRefused(group)) return undefined
      return { end: providerIdOf(name) }
    },
    isForeign({ metadata }: Node) {
      const group = groupByName(metadata.labels?.[platformLabels.nodeGroup] ?? '')
      return group !== undefined && isPrivate(group)
    },
    loseOne(random) {
      const there = world.cleverCloud.groups().filter(({ isReady, isEnding }) => isReady && !isEnding)
      const victim = there[random.uint32() % Math.max(1, there.length)]
      if (victim !== undefined) world.cleverCloud.vanish(victim.name)
      return victim?.name
    },
    playFaults: (faults) => playPlatformFaults(world, faults),
    leftovers() {
      const ending = own().filter(isLeaving)
      return ending.length === 0
        ? []
        : [
            `${ending.length} NodeGroup(s) still being deleted: ${ending.map(({ metadata }) => metadata.name).join(', ')}`,
          ]
    },
  }
}
