/** Faults of the simulated Clever Cloud, and changes of NodeGroups by users. */
import { karpenterKinds, type KubeObject, type NodeClaim } from '@tenon/api'
import { type NodeGroup, nodeGroupKind, ownNames } from '@tenon/provider-clever-cloud'
import type { CleverCloudSettings, GroupEffect } from '@tenon/simulator-clever-cloud'
import { integerBetween, type Random } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { FaultKind, Story } from '../story.ts'
import type { FaultDependencies } from './api-faults.ts'
import { playedFaults } from './played-faults.ts'

const second = 1000
const minute = 60 * second
/** How long a fault waits for an object to affect. */
const waitingMs = 5 * minute

const plenty = { cpu: 4000, memoryGb: 8000 } as const
/**
 * Percentages of the nominal memory that guests see, temporarily and in a whole world; the product ignores
 * reports below 90.
 */
const memoryPercents = [97, 95, 93] as const
const usualPercents = [100, 97, 97, 94] as const

/** On NodeGroups that a user created, whatever their labels. */
const privateAnnotation = 'world.tenon.sh/private'

/** Whether a user created the group for themselves. */
export const isPrivate = ({ metadata }: NodeGroup): boolean =>
  metadata.annotations?.[privateAnnotation] !== undefined

/** The platform of a world without faults, except that guests see a random part of the nominal memory. */
export function usualPlatform(
  { faults, withoutFaults }: Story,
  random: Random,
): Partial<CleverCloudSettings> {
  const isExact = faults === 'none' || withoutFaults.includes('smallGuests')
  const percent = usualPercents[random.uint32() % usualPercents.length] ?? 100
  return { quota: plenty, guestMemoryPercent: isExact ? 100 : percent }
}

const isLater = (random: Random): boolean => random.uint32() % 2 === 0

/** What happens to the next group, by kind of fault. */
const effects: readonly (readonly [kind: FaultKind, effect: (random: Random) => GroupEffect])[] = [
  [
    'failedOperation',
    (random) => {
      const late = isLater(random) ? { afterMs: integerBetween(random, second, 2 * minute) } : {}
      if (isLater(random))
        return { kind: 'refuse', reason: 'FlavorUnavailable', message: 'not here', ...late }
      return { kind: 'rejectByQuota', tells: isLater(random) ? 'phase' : 'phaseAndCondition', ...late }
    },
  ],
  [
    'upstreamError',
    (random) =>
      random.uint32() % 4 === 0
        ? { kind: 'quotaPhaseWhenReady' }
        : {
            kind: 'upstreamError',
            from: isLater(random) ? 'ready' : 'answer',
            forMs: integerBetween(random, minute, 20 * minute),
          },
  ],
  [
    'hangingOperation',
    (random) => ({
      kind: 'silent',
      ...(isLater(random) && { forMs: integerBetween(random, 5 * second, 10 * minute) }),
    }),
  ],
  [
    'slowSync',
    (random) => ({
      kind: 'slow',
      nodeMs: integerBetween(random, minute, 5 * minute),
      syncMs: integerBetween(random, 2 * minute, 10 * minute),
    }),
  ],
  ['groupVanishes', (random) => ({ kind: 'vanish', afterMs: integerBetween(random, 0, 2 * minute) })],
  ['neverBoots', () => ({ kind: 'neverBoots' })],
  ['neverReady', () => ({ kind: 'neverReady' })],
  [
    'failedDeletion',
    (random) =>
      isLater(random)
        ? { kind: 'leak' }
        : { kind: 'slowDeletion', moreMs: integerBetween(random, minute, 20 * minute) },
  ],
  [
    'groupResized',
    (random) => ({
      kind: 'resize',
      afterMs: integerBetween(random, 0, 2 * minute),
      nodeCount: integerBetween(random, 0, 3),
    }),
  ],
]

/** A NodeGroup of a user with the labels of a claim's own group. */
function privateGroup(name: string, claim: string, random: Random): KubeObject {
  const object: KubeObject & { readonly spec: NodeGroup['spec'] } = {
    apiVersion: 'api.clever-cloud.com/v1',
    kind: 'NodeGroup',
    metadata: {
      name,
      annotations: { [privateAnnotation]: 'true' },
      labels: { [ownNames.managed]: 'true', [ownNames.nodeClaim]: claim },
    },
    spec: {
      flavor: isLater(random) ? '2XS' : 'XS',
      nodeCount: 1,
      taints: [{ key: 'world.tenon.sh/private', value: 'true', effect: 'NoSchedule' }],
    },
  }
  return object
}

/** Starts and ends faults. Call the result to stop; users then revert their resizes. */
export function playPlatformFaults(world: World, deps: FaultDependencies): () => void {
  const { clock, log, weather } = deps
  const { cleverCloud: platform } = world
  const { local } = world.cluster.server
  const usualPercent = platform.settings.guestMemoryPercent
  let isStopped = false
  const { timed, asUser } = playedFaults(deps)
  const oneGroup = (kind: FaultKind): string | undefined => {
    const there = world.nodeGroups().filter((group) => !isPrivate(group))
    return there[weather.source(kind).uint32() % Math.max(1, there.length)]?.metadata.name
  }
  const addPrivate = (name: string, claim: string): void => {
    asUser(`foreignGroup ${name}`, () => {
      local.create(nodeGroupKind, privateGroup(name, claim, weather.source('foreignGroup')) as NodeGroup)
    })
  }
  const step = (): void => {
    if (isStopped) return
    for (const [kind, effect] of effects) {
      if (!weather.strikes(kind)) continue
      log.record('fault', kind)
      const random = weather.source(kind)
      const rule = { times: integerBetween(random, 1, 3), effect: effect(random) }
      clock.after(waitingMs, platform.faults.groups.add(rule))
    }
    if (weather.strikes('drought')) {
      const { used } = platform.quota()
      const random = weather.source('drought')
      platform.settings.quota = {
        cpu: used.cpu + integerBetween(random, 0, 16),
        memoryGb: used.memoryGb + integerBetween(random, 0, 32),
      }
      timed('drought', 40 * minute, () => {
        platform.settings.quota = plenty
      })
    }
    if (weather.strikes('smallGuests')) {
      const random = weather.source('smallGuests')
      platform.settings.guestMemoryPercent = memoryPercents[random.uint32() % memoryPercents.length] ?? 97
      timed('smallGuests', 40 * minute, () => {
        platform.settings.guestMemoryPercent = usualPercent
      })
    }
    if (weather.strikes('ownAutoscaler')) {
      platform.settings.ownAutoscaler = { periodMs: 30 * second, mostNodes: 3 }
      timed('ownAutoscaler', 10 * minute, () => {
        platform.settings.ownAutoscaler = undefined
      })
    }
    if (weather.strikes('groupDeleted')) {
      const name = oneGroup('groupDeleted')
      if (name !== undefined)
        asUser(`groupDeleted ${name}`, () => {
          local.delete(nodeGroupKind, undefined, name)
        })
    }
    if (weather.strikes('groupResized')) {
      const name = oneGroup('groupResized')
      if (name !== undefined)
        asUser(`groupResized ${name}`, () => {
          platform.resize(name, integerBetween(weather.source('groupResized'), 0, 3))
        })
    }
    clock.after(minute, step)
  }
  clock.after(minute, step)
  let added = 0
  const unsubscribe = local.subscribe<NodeClaim>(karpenterKinds.nodeClaim, {
    added: ({ metadata: { name } }) => {
      if (isStopped || !weather.strikes('foreignGroup')) return
      // With the name of the claim's own group, or another one.
      const own = weather.source('foreignGroup').uint32() % 2 === 0 ? name : `private-${added++}`
      // Immediately, otherwise the claim's launch would always be first.
      addPrivate(own, name)
    },
  })
  return () => {
    isStopped = true
    unsubscribe()
    platform.faults.clear()
    platform.settings.quota = plenty
    platform.settings.guestMemoryPercent = usualPercent
    platform.settings.ownAutoscaler = undefined
    const putRight = (): void => {
      for (const { metadata, spec } of world.nodeGroups())
        if (spec.nodeCount !== 1) platform.resize(metadata.name, 1)
    }
    putRight()
    // A group that was affected at its creation is resized up to two minutes later.
    clock.after(5 * minute, putRight)
  }
}
