/** What admission adds to pods. */
import type { Container, PodSpec, Toleration } from './objects.ts'

const evictionTolerationSeconds = 300

/** A template's spec as admission would complete it for a pod. */
export function withAdmission(spec: PodSpec): PodSpec {
  return {
    ...withRequestsFromLimits(spec),
    tolerations: withDefaultTolerations(spec.tolerations ?? []),
  }
}

/** With those of nodes that are not ready, or not heard of, for five minutes, unless something is said of them. */
export function withDefaultTolerations(tolerations: readonly Toleration[]): readonly Toleration[] {
  const covers = (key: string) =>
    tolerations.some(
      (toleration) =>
        (toleration.key === key || toleration.key === undefined || toleration.key === '') &&
        (toleration.effect === undefined || toleration.effect === 'NoExecute'),
    )
  const missing = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (key) => !covers(key),
  )
  if (missing.length === 0) return tolerations
  return [
    ...tolerations,
    ...missing.map((key) => ({
      key,
      operator: 'Exists' as const,
      effect: 'NoExecute' as const,
      tolerationSeconds: evictionTolerationSeconds,
    })),
  ]
}

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
