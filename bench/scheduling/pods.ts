/** Pods of the workloads, from a seeded source so that every run has the same ones. */
import { labels, type Pod, type PodSpec } from '@tenon/api'
import { integerBetween, type Random } from '@tenon/runtime'

const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

/** One element of `list`, uniformly. */
export const pick = <T>(random: Random, list: readonly T[]): T =>
  list[integerBetween(random, 0, list.length - 1)] as T

/**
 * A pending pod.
 * @param serial becomes its name and UID; unique within a workload.
 */
export function aPod(
  serial: number,
  requests: Readonly<Record<string, string>>,
  podLabels: Readonly<Record<string, string>>,
  spec: Partial<PodSpec> = {},
): Pod {
  const id = String(serial).padStart(7, '0')
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p-${id}`, namespace: 'default', uid: id, labels: podLabels },
    spec: { containers: [{ name: 'app', resources: { requests } }], ...spec },
  }
}

const drawnRequests = (random: Random) => ({
  cpu: `${pick(random, [100, 250, 500, 1000, 1500])}m`,
  memory: `${pick(random, [100, 256, 512, 1024, 2048, 4096])}Mi`,
})

/** Spreads pods with these labels with a maximum skew of one. */
export const spreadOver = (topologyKey: string, matchLabels: Record<string, string>): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels } },
  ],
})

/** Keeps pods with these labels off each other's nodes. */
export const apartOnHosts = (matchLabels: Record<string, string>): Partial<PodSpec> => ({
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: labels.hostname, labelSelector: { matchLabels } },
      ],
    },
  },
})

const togetherInZone = (matchLabels: Record<string, string>): Partial<PodSpec> => ({
  affinity: {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: labels.zone, labelSelector: { matchLabels } },
      ],
    },
  },
})

/** Five equal groups: generic, zone spread, host spread, zone affinity, host anti-affinity. */
export function diverse(random: Random, count: number): readonly Pod[] {
  const letter = () => pick(random, letters)
  return Array.from({ length: count }, (_, i) => {
    const requests = drawnRequests(random)
    // The remainder of the division by five is generic.
    const group = i < Math.floor(count / 5) * 5 ? i % 5 : 0
    switch (group) {
      case 1:
        return aPod(i, requests, { 'my-label': letter() }, spreadOver(labels.zone, { 'my-label': letter() }))
      case 2:
        return aPod(
          i,
          requests,
          { 'my-label': letter() },
          spreadOver(labels.hostname, { 'my-label': letter() }),
        )
      case 3: {
        const own = { 'my-affininity': letter() }
        return aPod(i, requests, own, togetherInZone(own))
      }
      case 4:
        return aPod(i, requests, { app: 'nginx' }, apartOnHosts({ app: 'nginx' }))
      default:
        return aPod(i, requests, { 'my-label': letter() })
    }
  })
}

/** Pods with a preferred zone, and preferred anti-affinity by zone and host. */
export function preferences(random: Random, count: number): readonly Pod[] {
  const apart = (weight: number, topologyKey: string) => ({
    weight,
    podAffinityTerm: { topologyKey, labelSelector: { matchLabels: { app: 'nginx' } } },
  })
  const inZone1 = { key: labels.zone, operator: 'In' as const, values: ['test-zone-1'] }
  const affinity: PodSpec['affinity'] = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: { matchExpressions: [inZone1] } },
      ],
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [apart(10, labels.zone), apart(1, labels.hostname)],
    },
  }
  return Array.from({ length: count }, (_, i) =>
    aPod(i, drawnRequests(random), { app: 'nginx' }, { affinity }),
  )
}

const eight = [
  ['250m', '512Mi'],
  ['500m', '1Gi'],
  ['1', '2Gi'],
  ['100m', '256Mi'],
  ['1500m', '4Gi'],
  ['2', '16Gi'],
  ['4', '8Gi'],
  ['750m', '6Gi'],
] as const

/** 100 pods each of eight shapes, as from eight Deployments. */
export function eightShapes(): readonly Pod[] {
  return eight.flatMap(([cpu, memory], shape) =>
    Array.from({ length: 100 }, (_, i) => aPod(shape * 100 + i, { cpu, memory }, { app: `shape-${shape}` })),
  )
}
