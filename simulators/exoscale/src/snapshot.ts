import type { CloudState } from './zone/cloud-state.ts'
import type { Instance, InstanceState } from './instances/instance.ts'
import { pricePerHour } from './zone/catalogue.ts'

/** The state of one instance, for people. */
export interface InstanceSnapshot {
  readonly id: string
  readonly name: string
  readonly state: InstanceState
  /** `family.size` */
  readonly type: string
  readonly templateId: string
  readonly labels: Readonly<Record<string, string>>
  readonly publicIp: string | undefined
  readonly instancePoolId: string | undefined
  /** Milliseconds since the Unix epoch. */
  readonly createdAtMs: number
  /** EUR per hour while it runs; undefined if the price is unknown. */
  readonly pricePerHour: number | undefined
  /** The node of its kubelet; undefined before it has joined. */
  readonly nodeName: string | undefined
  /** Why its last attempt to join the cluster failed. */
  readonly whyNotJoined: string | undefined
}

/** The state of the zone. */
export interface CloudSnapshot {
  readonly zone: string
  /** In creation order. */
  readonly instances: readonly InstanceSnapshot[]
  /** Number of instances by state; states without instances are absent. */
  readonly totals: Readonly<Partial<Record<InstanceState, number>>>
  /** EUR per hour of all running instances with a known price. */
  readonly pricePerHour: number
}

export function snapshotOf(state: CloudState): CloudSnapshot {
  const instances = instancesOf(state)
  const totals: Partial<Record<InstanceState, number>> = {}
  let sum = 0
  for (const instance of instances) {
    totals[instance.state] = (totals[instance.state] ?? 0) + 1
    if (instance.state === 'running') sum += instance.pricePerHour ?? 0
  }
  return { zone: state.zone, instances, totals, pricePerHour: sum }
}

/** In creation order. */
export function instancesOf(state: CloudState): readonly InstanceSnapshot[] {
  return state.instances.values().map(instanceSnapshot)
}

function instanceSnapshot(instance: Instance): InstanceSnapshot {
  const { type, system } = instance
  return {
    id: instance.id,
    name: instance.name,
    state: instance.state,
    type: type.name,
    templateId: instance.template.id,
    labels: instance.labels,
    publicIp: instance.publicIp,
    instancePoolId: instance.instancePoolId,
    createdAtMs: instance.createdAtMs,
    pricePerHour: pricePerHour(type.family, type.size),
    nodeName: system.kubelet?.nodeName,
    whyNotJoined: system.whyNotJoined,
  }
}
