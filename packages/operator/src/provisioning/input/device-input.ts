/** Devices and claims on them, for one decision (devices.md 3.4, 3.5). */
import {
  type DeviceTaintRule,
  extendedResourceClasses,
  type Pod,
  type ResourceClaim,
  type ResourceSlice,
  servesImplicitNames,
} from '@tenon/api'
import type { DeviceAllocation, DevicesInput } from '@tenon/engine'
import { type Caches, servesDevices } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { PlacementGate } from '../../placement/gate.ts'

export interface DeviceSources {
  readonly caches: Pick<
    Caches,
    'deviceClasses' | 'deviceTaintRules' | 'deviceTaintRulesBeta' | 'resourceClaims' | 'resourceSlices'
  >
  readonly state: Pick<ClusterState, 'stateNodes'>
  readonly placementGate: Pick<PlacementGate, 'minor'>
}

/** The claims of a pod, or why they are not known yet. */
export type PodClaims = { readonly names: readonly string[] } | { readonly problem: string }

const none: PodClaims = { names: [] }

/** The DeviceClass that serves each extended resource; empty where devices are not served. */
export function extendedResources({
  caches,
  placementGate,
}: Pick<DeviceSources, 'caches' | 'placementGate'>): ReadonlyMap<string, string> {
  if (!servesDevices(caches)) return new Map()
  const classes = caches.deviceClasses?.list() ?? []
  // A server without the feature drops the field.
  const isGateOn = classes.some(({ spec }) => (spec.extendedResourceName ?? '') !== '')
  return extendedResourceClasses(classes, servesImplicitNames(placementGate.minor, isGateOn))
}

/** Whether a container of the pod requests one of the resources. */
export function requestsSome({ spec }: Pod, resources: ReadonlyMap<string, string>): boolean {
  if (resources.size === 0) return false
  return [...spec.containers, ...(spec.initContainers ?? [])].some((container) => {
    for (const name in container.resources?.requests) if (resources.has(name)) return true
    return false
  })
}

/**
 * The claim (`namespace/name`) that kube-scheduler has created for the extended resources of a pod without a node. The pod
 * can only go where its devices are, even if it was not bound at once.
 */
export function extendedClaimOf(
  caches: DeviceSources['caches'],
  { metadata, status }: Pod,
): string | undefined {
  const name = status?.extendedResourceClaimStatus?.resourceClaimName
  const { namespace = '' } = metadata
  const claim = name === undefined ? undefined : caches.resourceClaims?.get({ namespace, name })
  return claim && keyOf(claim)
}

/** The claims (`namespace/name`) that a pod uses; those that its status says it does not need are left out. */
export function claimsOfPod(caches: DeviceSources['caches'], { metadata, spec, status }: Pod): PodClaims {
  const { resourceClaims } = caches
  const references = spec.resourceClaims ?? []
  if (references.length === 0 || resourceClaims === undefined || !servesDevices(caches)) return none
  const namespace = metadata.namespace ?? ''
  const names: string[] = []
  for (const { name, resourceClaimName } of references) {
    let claimName = resourceClaimName
    if (claimName === undefined) {
      const made = status?.resourceClaimStatuses?.find((each) => each.name === name)
      if (made === undefined)
        return {
          problem: `the ResourceClaim for ${name} (spec.resourceClaims) is not created yet; wait for it`,
        }
      claimName = made.resourceClaimName
      if (claimName === undefined) continue
    }
    if (resourceClaims.get({ namespace, name: claimName }) === undefined)
      return { problem: `ResourceClaim ${namespace}/${claimName} does not exist; create it` }
    names.push(`${namespace}/${claimName}`)
  }
  return { names }
}

/** Pods of a decision that use devices. */
export interface DeviceUsers {
  /** Claims by UID of the pods that use some. */
  readonly claimsOf: ReadonlyMap<string, readonly string[]>
  /** UIDs of the pods for whose extended resources one of these claims was created. */
  readonly withExtendedClaim: ReadonlySet<string>
  /** The DeviceClass by extended resource; empty if no pod requests any. */
  readonly extendedResources: ReadonlyMap<string, string>
}

/**
 * @param leaving UIDs of pods whose node goes.
 * @returns undefined where pods with claims are not served.
 */
export function devicesInput(
  { caches, state }: DeviceSources,
  { claimsOf, withExtendedClaim, extendedResources: served }: DeviceUsers,
  leaving: ReadonlySet<string>,
): DevicesInput | undefined {
  const { deviceClasses, resourceClaims, resourceSlices } = caches
  if (deviceClasses === undefined || resourceClaims === undefined || resourceSlices === undefined)
    return undefined
  if (!servesDevices(caches)) return undefined
  if (claimsOf.size + served.size === 0)
    return { slices: [], classes: [], claims: new Map(), claimsOf, allocations: [], leaving }
  const used = new Set([...claimsOf.values()].flat())
  const all = resourceClaims.list()
  return {
    slices: usableSlices(state, resourceSlices.list()),
    classes: deviceClasses.list(),
    taintRules: taintRules(caches),
    claims: new Map(all.flatMap((claim) => (used.has(keyOf(claim)) ? [[keyOf(claim), claim] as const] : []))),
    claimsOf,
    extendedResources: served,
    withExtendedClaim,
    allocations: all.flatMap(allocationOf),
    leaving,
  }
}

/** A server with both versions of rules has each of them in both. */
function taintRules({
  deviceTaintRules,
  deviceTaintRulesBeta,
}: DeviceSources['caches']): readonly DeviceTaintRule[] {
  const rules = [...(deviceTaintRulesBeta?.list() ?? []), ...(deviceTaintRules?.list() ?? [])]
  return [...new Map(rules.map((rule) => [rule.metadata.name, rule])).values()]
}

/** Without those of nodes that go, or have not published all of their devices yet. */
function usableSlices(
  state: DeviceSources['state'],
  slices: readonly ResourceSlice[],
): readonly ResourceSlice[] {
  const ready = new Set(
    state
      .stateNodes()
      .filter(({ isInitialized, isMarkedForDeletion }) => isInitialized && !isMarkedForDeletion)
      .flatMap(({ node }) => node?.metadata.name ?? []),
  )
  return slices.filter(({ metadata }) =>
    (metadata.ownerReferences ?? []).every(({ kind, name }) => kind !== 'Node' || ready.has(name)),
  )
}

function keyOf({ metadata }: ResourceClaim): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

/** What a claim has; access of administrators takes nothing. */
function allocationOf(claim: ResourceClaim): readonly DeviceAllocation[] {
  const { allocation, reservedFor = [] } = claim.status ?? {}
  if (allocation === undefined) return []
  const isForPods = reservedFor.every(({ apiGroup = '', resource }) => apiGroup === '' && resource === 'pods')
  return [
    {
      claim: keyOf(claim),
      pods: isForPods ? reservedFor.map(({ uid }) => uid) : undefined,
      devices: (allocation.devices?.results ?? [])
        .filter(({ adminAccess }) => adminAccess !== true)
        .map(({ driver, pool, device, consumedCapacity }) => ({ driver, pool, device, consumedCapacity })),
    },
  ]
}
