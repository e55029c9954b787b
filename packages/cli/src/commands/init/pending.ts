/** Which instance types fit pending pods. */
import {
  comparePrices,
  type InstanceType,
  labels,
  ownValue,
  type Pod,
  podRequests,
  type Resources,
  type Taint,
  untoleratedTaint,
} from '@tenon/api'
import { allocatableOf } from '@tenon/provider'
import { priceOf } from './neighbours.ts'

/** The labels and taints of a NodePool's nodes. */
export interface PoolShape {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

/** Whether a pod may run on nodes of a pool with one of these types. */
export function isAccepted(pod: Pod, shape: PoolShape): boolean {
  return untoleratedTaint(shape.taints, pod.spec?.tolerations) === undefined
}

/** Keys of the pod's node selector that neither the pool nor the type has. */
export function unmetSelectors(pod: Pod, shape: PoolShape, type: InstanceType): readonly string[] {
  return Object.entries(pod.spec?.nodeSelector ?? {}).flatMap(([key, value]) =>
    ownValue(shape.labels, key) === value || admits(type, key, value) ? [] : [`${key}=${value}`],
  )
}

function admits(type: InstanceType, key: string, value: string): boolean {
  if (key === labels.instanceType) return type.name === value
  const all = [...type.requirements, ...type.offerings.flatMap(({ requirements }) => requirements)]
  return all.some(
    (each) => each.key === key && each.operator === 'In' && each.values?.includes(value) === true,
  )
}

/** Whether a pod fits on an empty node of the type, beside DaemonSet pods. */
export function isRoomFor(pod: Pod, type: InstanceType, daemonRequests: Resources): boolean {
  if (pod.spec === undefined) return false
  const allocatable = allocatableOf(type)
  return Object.entries(podRequests(pod.spec)).every(
    ([name, amount]) => amount + (ownValue(daemonRequests, name) ?? 0) <= (ownValue(allocatable, name) ?? 0),
  )
}

/** The cheapest type for a pod on nodes of a pool; types of unknown price last. */
export function cheapestFor(
  pod: Pod,
  shape: PoolShape,
  types: readonly InstanceType[],
  daemonRequests: Resources,
): InstanceType | undefined {
  return types
    .filter((type) => isRoomFor(pod, type, daemonRequests) && unmetSelectors(pod, shape, type).length === 0)
    .toSorted((a, b) => comparePrices(priceOf(a), priceOf(b)) || (a.name < b.name ? -1 : 1))[0]
}
