/** What admission adds to pods. */
import type { Container, PodSpec } from './objects.ts'

/** A template's spec as admission would complete it: limits stand in for missing requests. */
export function withRequestsFromLimits(spec: PodSpec): PodSpec {
  const complete = (container: Container): Container => ({
    ...container,
    resources: {
      ...container.resources,
      requests: { ...container.resources?.limits, ...container.resources?.requests },
    },
  })
  return {
    ...spec,
    containers: spec.containers.map(complete),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(complete) }),
  }
}
