/** The most a pod may take of its node. */
import { type Container, ownValue, parseResources, type Pod, podRequests, type Resources } from '@tenon/api'

/**
 * Limits of one pod, with `pods: 1`, counted as its requests are; its overhead only where it has a limit.
 * @throws RangeError when a quantity is malformed.
 */
export function podLimits({ spec }: Pod): Resources {
  const { overhead, initContainers, ...rest } = spec
  const limits = podRequests({
    ...rest,
    containers: spec.containers.map(askingForLimits),
    ...(initContainers && { initContainers: initContainers.map(askingForLimits) }),
    ...(spec.resources && { resources: { requests: spec.resources.limits ?? {} } }),
  })
  const extra = Object.entries(parseResources(overhead)).filter(
    ([name]) => ownValue(limits, name) !== undefined,
  )
  return {
    ...limits,
    ...Object.fromEntries(extra.map(([name, amount]) => [name, (ownValue(limits, name) ?? 0) + amount])),
  }
}

function askingForLimits({ resources, ...container }: Container): Container {
  return { ...container, ...(resources?.limits && { resources: { requests: resources.limits } }) }
}
