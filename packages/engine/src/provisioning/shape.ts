/** What of a pod decides where it can go; pods that are alike in it share one shape. */
import type { Pod, PodSpec, Resources, Toleration } from '@tenon/api'
import { type PodRequirements, podRequirements } from '../requirements/requirements.ts'
import type { SchedulingPolicy } from '../snapshot/input.ts'
import { type HostPort, hostPortsOf } from './host-ports.ts'
import { podRequests } from './pod-resources.ts'
import { relax, withoutPreferences } from './relaxation.ts'
import type { SelectablePod } from './topology/group.ts'

export interface PodShape {
  /** The spec after relaxation. */
  readonly spec: PodSpec
  /** What selectors of other pods see. */
  readonly selectable: SelectablePod
  readonly requests: Resources
  readonly requirements: PodRequirements
  readonly tolerations: readonly Toleration[]
  readonly hostPorts: readonly HostPort[]
  /** The same pod with one wish less; undefined when nothing is left to relax. */
  readonly relaxed: () => PodShape | undefined
}

/** Makes shapes; equal pods get the same object, so that what is learnt of one serves all. */
export class ShapeCatalogue {
  readonly #shapes = new Map<string, PodShape>()
  readonly #policy: SchedulingPolicy
  readonly #toleratePreferNoSchedule: boolean

  constructor(policy: SchedulingPolicy, toleratePreferNoSchedule: boolean) {
    this.#policy = policy
    this.#toleratePreferNoSchedule = toleratePreferNoSchedule
  }

  shapeOf(pod: Pod): PodShape {
    const spec = this.#policy.preferences === 'Ignore' ? withoutPreferences(pod.spec) : pod.spec
    return this.#intern(spec, { namespace: pod.metadata.namespace ?? '', labels: pod.metadata.labels ?? {} })
  }

  #intern(spec: PodSpec, selectable: SelectablePod): PodShape {
    const key = shapeKey(spec, selectable)
    const known = this.#shapes.get(key)
    if (known !== undefined) return known
    const shape: PodShape = {
      spec,
      selectable,
      requests: podRequests(spec),
      requirements: podRequirements(spec),
      tolerations: spec.tolerations ?? [],
      hostPorts: hostPortsOf(spec),
      relaxed: () => {
        const next = relax(spec, this.#toleratePreferNoSchedule)
        return next === undefined ? undefined : this.#intern(next, selectable)
      },
    }
    this.#shapes.set(key, shape)
    return shape
  }
}

function shapeKey(spec: PodSpec, { namespace, labels }: SelectablePod): string {
  const containers = (list: PodSpec['containers'] | undefined) =>
    list?.map((c) => [
      c.resources?.requests,
      c.restartPolicy,
      c.ports?.filter((p) => (p.hostPort ?? 0) !== 0),
    ])
  return JSON.stringify([
    namespace,
    Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    containers(spec.containers),
    containers(spec.initContainers),
    spec.overhead,
    spec.resources?.requests,
  ])
}
