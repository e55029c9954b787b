/** How many pods a CapacityBuffer keeps room for (buffers-and-dra.md 2.3). */
import { type CapacityBuffer, ownValue, parseResources, podRequests, type PodSpec } from '@tenon/api'

const mostReplicas = 2_147_483_647

/**
 * @param spec of the pods.
 * @param scale replicas of the workload that the buffer refers to; undefined for a PodTemplate.
 * @throws RangeError when a request or a limit is not a quantity.
 */
export function bufferReplicas(
  { limits, percentage, replicas }: CapacityBuffer['spec'],
  spec: PodSpec,
  scale: number | undefined,
): number {
  const part =
    scale === undefined || scale <= 0 || percentage === undefined ? undefined : ceiled(scale, percentage)
  const sizes = [replicas, part].filter((size) => size !== undefined)
  const most = limits === undefined ? undefined : withinLimits(limits, spec)
  if (sizes.length === 0) return Math.min(most ?? 0, mostReplicas)
  return Math.min(...(most === undefined ? [] : [most]), Math.max(...sizes), mostReplicas)
}

/** Rounded up: at least 1 of any part of anything. */
const ceiled = (scale: number, percentage: number) => Math.ceil((scale * percentage) / 100)

/** Undefined when the pods ask for nothing that is limited. */
function withinLimits(
  limits: NonNullable<CapacityBuffer['spec']['limits']>,
  spec: PodSpec,
): number | undefined {
  const most = parseResources(limits)
  const { pods: _, ...requests } = podRequests(spec)
  const counts = Object.entries(requests).flatMap(([name, amount]) => {
    const limit = ownValue(most, name)
    return limit === undefined || amount <= 0 ? [] : [Math.max(0, Math.floor(limit / amount))]
  })
  return counts.length === 0 ? undefined : Math.min(...counts)
}
