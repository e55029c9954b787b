/** Groups pods with equal requirements (cluster-autoscaler.md 4.2). */
import type { Pod, PodSpec } from '@tenon/api'
import { controllerReference, isDaemonSetPod } from './pod-traits.ts'

/** Equal pods; the exemplar stands for all. Never empty. */
export interface PodGroup {
  readonly exemplar: Pod
  readonly pods: readonly Pod[]
}

/** Maximum groups per controller; further kinds of pods are not grouped. */
const mostKinds = 10

export interface PodGroups {
  readonly groups: readonly PodGroup[]
  /** The number of controllers with more kinds of pods. */
  readonly overflowing: number
}

export function podGroups(pods: readonly Pod[]): PodGroups {
  const groups: Pod[][] = []
  const byController = new Map<string, Map<string, Pod[]>>()
  const overflowing = new Set<string>()
  for (const pod of pods) {
    const controller = controllerOf(pod)
    if (controller === undefined) {
      groups.push([pod])
      continue
    }
    const kinds = byController.get(controller) ?? new Map<string, Pod[]>()
    byController.set(controller, kinds)
    const key = kindOf(pod)
    const known = kinds.get(key)
    if (known !== undefined) {
      known.push(pod)
      continue
    }
    const group = [pod]
    groups.push(group)
    if (kinds.size < mostKinds) kinds.set(key, group)
    else overflowing.add(controller)
  }
  return {
    groups: groups.map((members) => ({ exemplar: members[0] as Pod, pods: members })),
    overflowing: overflowing.size,
  }
}

/** UID of the controller; undefined for pods that are not grouped. */
export function controllerOf(pod: Pod): string | undefined {
  return isDaemonSetPod(pod) ? undefined : controllerReference(pod)?.uid
}

const known = new WeakMap<Pod, string>()

/** Equal for pods of one controller that are equal to a scheduler. */
export function kindOf(pod: Pod): string {
  let kind = known.get(pod)
  if (kind === undefined) {
    kind = JSON.stringify([sorted(pod.metadata.labels ?? {}), sorted(relevant(pod.spec))])
    known.set(pod, kind)
  }
  return kind
}

type Fields = Readonly<Record<string, unknown>>

/** The spec without fields that differ between equal pods: environment, projected volumes, host name. */
function relevant(spec: PodSpec): Fields {
  const {
    hostname: _hostname,
    volumes,
    containers,
    initContainers,
    ...rest
  } = spec as PodSpec & { hostname?: string }
  const all = (volumes ?? []) as readonly (Fields & { readonly name: string })[]
  const projected = new Set(all.flatMap((each) => (each['projected'] === undefined ? [] : [each.name])))
  const container = (each: object): Fields => {
    const {
      env: _env,
      volumeMounts,
      ...own
    } = each as Fields & {
      readonly env?: unknown
      readonly volumeMounts?: readonly { readonly name: string }[]
    }
    return { ...own, volumeMounts: (volumeMounts ?? []).filter(({ name }) => !projected.has(name)) }
  }
  return {
    ...rest,
    volumes: all.filter(({ name }) => !projected.has(name)),
    containers: containers.map(container),
    initContainers: (initContainers ?? []).map(container),
  }
}

/** The value with sorted keys, so that equal values have equal text. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => [key, sorted(each)])
}
