/** Groups of pods that run together or not at all, each with its own requests. */
import { type InstanceType, labels, type Pod } from '@tenon/api'
import type { PodGroupInput, SchedulingInput } from '@tenon/engine'
import type { Random } from '@tenon/runtime'
import { oneOf, pool } from './catalogue.ts'
import { aPod, pick } from './pods.ts'

interface Gangs {
  readonly gangs: number
  readonly members: number
  /** Whether all members of a group must be in one zone. */
  readonly inOneZone: boolean
  /** Number of ordinary pods. */
  readonly others: number
  /** False: the same pods without their groups. */
  readonly areGroups: boolean
}

const requestsOf = (random: Random) => ({
  cpu: `${pick(random, [500, 1000, 2000, 4000, 8000])}m`,
  memory: `${pick(random, [1024, 2048, 4096, 8192, 16384])}Mi`,
})

/** The whole input without its policy. */
export function gangsInput(
  random: Random,
  catalogue: readonly InstanceType[],
  { gangs, members, inOneZone, others, areGroups }: Gangs,
): Omit<SchedulingInput, 'policy'> {
  const pods: Pod[] = []
  const groups: PodGroupInput[] = []
  for (let gang = 0; gang < gangs; gang++) {
    const requests = requestsOf(random)
    const own = Array.from({ length: members }, (_, at) => aPod(gang * members + at, requests, {}, {}))
    pods.push(...own)
    groups.push({
      id: `podgroups.scheduling.k8s.io/default/gang-${gang}`,
      members: own.map(({ metadata }) => metadata.uid ?? ''),
      minCount: members,
      bound: 0,
      priority: 0,
      createdAt: '2026-01-01T00:00:00Z',
      ...(inOneZone && { topology: { key: labels.zone } }),
    })
  }
  for (let at = 0; at < others; at++) pods.push(aPod(gangs * members + at, requestsOf(random), {}, {}))
  return {
    pods,
    nodes: [],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    pools: [pool('default', catalogue, { requirements: [oneOf(labels.os, 'linux')] })],
    ...(areGroups && { podGroups: groups }),
  }
}
