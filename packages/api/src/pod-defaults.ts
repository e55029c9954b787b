/** Defaults that admission sets on pods. */
import type { Container, LimitRangeItem, PodSpec, ResourceList, Toleration } from './objects.ts'

const evictionTolerationSeconds = 300

/** Completes the spec of a pod template as admission would for its pods. */
export function withAdmission(spec: PodSpec): PodSpec {
  return {
    ...withRequestsFromLimits(spec),
    tolerations: withDefaultTolerations(spec.tolerations ?? []),
  }
}

/** Adds the five-minute tolerations of nodes that are not ready or unreachable, unless the pod has its own. */
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

interface ContainerDefaults {
  readonly requests: ResourceList
  readonly limits: ResourceList
}

/** Defaults of a namespace's LimitRanges; if several set a value, the first wins. */
export function containerDefaults(items: readonly LimitRangeItem[]): ContainerDefaults {
  // The first is applied last, so that it wins.
  const given = items.filter(({ type }) => type === 'Container').toReversed()
  const all = (field: 'default' | 'defaultRequest'): ResourceList =>
    Object.fromEntries(given.flatMap((item) => Object.entries(item[field] ?? {})))
  return { requests: all('defaultRequest'), limits: all('default') }
}

/** Sets the defaults on containers that lack them. */
export function withContainerDefaults(spec: PodSpec, { requests, limits }: ContainerDefaults): PodSpec {
  const complete = (container: Container): Container => ({
    ...container,
    resources: {
      ...container.resources,
      ...merged('requests', requests, container.resources?.requests),
      ...merged('limits', limits, container.resources?.limits),
    },
  })
  return withContainers(spec, complete)
}

function merged(
  field: keyof ContainerDefaults,
  given: ResourceList,
  stated: ResourceList | undefined,
): object {
  return Object.keys(given).length === 0 ? {} : { [field]: { ...given, ...stated } }
}

/** Sets missing requests to the limits, as admission does. */
export function withRequestsFromLimits(spec: PodSpec): PodSpec {
  const complete = (container: Container): Container => ({
    ...container,
    resources: {
      ...container.resources,
      requests: { ...container.resources?.limits, ...container.resources?.requests },
    },
  })
  return withContainers(spec, complete)
}

function withContainers(spec: PodSpec, change: (container: Container) => Container): PodSpec {
  return {
    ...spec,
    containers: spec.containers.map(change),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(change) }),
  }
}
