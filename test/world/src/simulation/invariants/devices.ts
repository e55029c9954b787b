/** Nodes are launched for missing devices, but not for those whose driver has not published yet (devices.md 3.17). */
import {
  type DeviceRequest,
  isConditionTrue,
  karpenterKinds,
  kinds,
  labels,
  type NodeClaim,
  ownValue,
  type Pod,
  type ResourceClaim,
} from '@tenon/api'
import type { World } from '../../world.ts'
import { devicePool, pairTemplate } from '../workload/devices.ts'
import type { Invariant } from './scene.ts'

/** A claim that is older and not initialized may have failed. */
const startingMs = 5 * 60_000
/** GPUs of the pool's types. */
const gpusOf: Readonly<Record<string, number>> = { 'gpua30.small': 1, 'gpua30.medium': 2 }

/** What pods waited for at some moment. */
interface Wanted {
  readonly devices: number
  /** Some claim requests two devices, which must be on one node. */
  readonly hasPairs: boolean
}

/**
 * A claim is launched for pods with device claims only if starting nodes do not have enough devices. All
 * devices of the pool are equal, so counting is enough. Recently pending pods count too, as controllers may see
 * changes late.
 */
export const noSecondNodeForDevices: Invariant = (scene) => {
  const { world, clock, blindMs, violate, claimByName, podByKey } = scene
  const wanted: (Wanted & { readonly atMs: number })[] = []
  const note = (): void => {
    const atMs = clock.monotonic()
    wanted.push({ atMs, ...wantedDevices(world) })
    while ((wanted[0]?.atMs ?? atMs) < atMs - 2 * blindMs - 60_000) wanted.shift()
  }
  return {
    pod(now, before) {
      if (claimsDevices(now) || claimsDevices(before)) note()
    },
    minute: note,
    bought(name, pods) {
      const bought = claimByName(name)
      if (bought === undefined || !isForDevices(bought)) return
      // Pods that have to move hold devices, which wait for no node.
      if (pods.some((key) => podByKey(key)?.spec.nodeName !== undefined)) return
      note()
      const most = Math.max(...wanted.map(({ devices }) => devices))
      const onTheirWay = startingNodes(world, clock.now()).filter(({ metadata }) => metadata.name !== name)
      const expected = onTheirWay.reduce((sum, claim) => sum + freeDevicesOf(world, claim), 0)
      // A pair may have to wait for one node while single devices are free on others.
      const leftOver = wanted.some(({ hasPairs }) => hasPairs) ? onTheirWay.length : 0
      if (onTheirWay.length === 0 || expected < most + leftOver) return
      violate(
        'noSecondNodeForDevices',
        `NodeClaim ${name} is bought for devices, of which ${most} are waited for and ${expected} are on their way: ${onTheirWay
          .map(({ metadata }) => metadata.name)
          .join(', ')}`,
      )
    },
  }
}

/** Claims of the pool whose nodes are starting normally. */
function startingNodes(world: World, nowMs: number): readonly NodeClaim[] {
  return world.cluster.server.local
    .list(karpenterKinds.nodeClaim)
    .filter(
      (claim) =>
        isForDevices(claim) &&
        claim.metadata.deletionTimestamp === undefined &&
        isConditionTrue(claim, 'Launched') &&
        !isConditionTrue(claim, 'Initialized') &&
        nowMs - Date.parse(claim.metadata.creationTimestamp ?? '') < startingMs,
    )
}

function isForDevices({ metadata }: NodeClaim): boolean {
  return metadata.labels?.[labels.nodePool] === devicePool
}

/** Unallocated devices that the node of a claim has or will have. */
function freeDevicesOf(world: World, { metadata, status }: NodeClaim): number {
  const all = ownValue(gpusOf, metadata.labels?.[labels.instanceType] ?? '') ?? 0
  const prefix = `${status?.nodeName ?? ''}/`
  const given = world.cluster.server.local
    .list(kinds.resourceClaim)
    .flatMap((claim) => claim.status?.allocation?.devices?.results ?? [])
  return all - given.filter(({ pool }) => pool.startsWith(prefix)).length
}

const claimsDevices = (pod: Pod | undefined): boolean => (pod?.spec.resourceClaims ?? []).length > 0

/** Devices that pods without a node wait for. */
function wantedDevices(world: World): Wanted {
  const { local } = world.cluster.server
  const open = new Set<string>()
  let devices = 0
  let hasPairs = false
  for (const pod of world.pods()) {
    if (!claimsDevices(pod) || pod.spec.nodeName !== undefined) continue
    const { namespace = '', name: podName } = pod.metadata
    for (const { name, resourceClaimName, resourceClaimTemplateName } of pod.spec.resourceClaims ?? []) {
      const made = pod.status?.resourceClaimStatuses?.find((each) => each.name === name)?.resourceClaimName
      const claimName = resourceClaimName ?? made
      const key = claimName === undefined ? `${podName}/${name}` : claimName
      if (open.has(key)) continue
      open.add(key)
      const claim = claimName === undefined ? undefined : local.get(kinds.resourceClaim, namespace, claimName)
      const expected = resourceClaimTemplateName === pairTemplate ? 2 : 1
      const count = claim === undefined ? expected : countOf(claim)
      devices += count
      hasPairs ||= count > 1
    }
  }
  return { devices, hasPairs }
}

function countOf({ spec, status }: ResourceClaim): number {
  if (status?.allocation !== undefined) return 0
  return (spec?.devices?.requests ?? []).reduce((sum, request) => sum + devicesIn(request), 0)
}

function devicesIn({ exactly }: DeviceRequest): number {
  return exactly?.count ?? 1
}

/** Devices that are allocated twice, once everything has settled. */
export function deviceTrouble(world: World): readonly string[] {
  const holders = new Map<string, string>()
  const problems: string[] = []
  for (const { metadata, status } of world.cluster.server.local.list(kinds.resourceClaim))
    for (const { driver, pool, device } of status?.allocation?.devices?.results ?? []) {
      const key = `${driver} ${pool} ${device}`
      const other = holders.get(key)
      if (other !== undefined) problems.push(`ResourceClaims ${other} and ${metadata.name} both have ${key}`)
      holders.set(key, metadata.name)
    }
  return problems
}

/** No node of the pool is initialized before its devices were published. */
export const driversAwaited: Invariant = ({ violate, world }) => {
  const published = new Set<string>()
  world.cluster.server.local.subscribe(kinds.resourceSlice, {
    added: ({ spec }) => published.add(spec.nodeName ?? ''),
    updated: () => undefined,
    deleted: () => undefined,
  })
  return {
    claim(now, before) {
      if (now === undefined || !isForDevices(now) || !isConditionTrue(now, 'Initialized')) return
      if (before !== undefined && isConditionTrue(before, 'Initialized')) return
      if (published.has(now.status?.nodeName ?? '')) return
      violate(
        'driversAwaited',
        `NodeClaim ${now.metadata.name} is initialized, and its node has not published any device`,
      )
    },
  }
}
