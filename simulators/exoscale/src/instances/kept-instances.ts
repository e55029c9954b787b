/** The stored form of instances, which is kept between runs. */
import type { KeptInstances as KeptRecords } from '@tenon/devcluster'
import type { Instance } from './instance.ts'

/** An instance as plain JSON data. */
export interface InstanceRecord extends Omit<Instance, 'type' | 'system'> {
  /** `family.size` */
  readonly type: string
  /** An instance that has joined continues as a node; others boot again. */
  readonly hasJoined: boolean
  readonly neverBoots: boolean
  readonly neverJoins: boolean
  readonly neverReady: boolean
}

/** Where instances are stored. */
export type KeptInstances = KeptRecords<InstanceRecord>

/** Stores the current state of an instance. */
export function keepInstance(kept: KeptInstances | undefined, instance: Instance): void {
  if (kept === undefined) return
  if (instance.state === 'destroyed') {
    kept.remove(instance.id)
    return
  }
  const { type, system, ...rest } = instance
  const { phase, neverBoots, neverJoins, neverReady } = system
  kept.save({ ...rest, type: type.name, hasJoined: phase === 'joined', neverBoots, neverJoins, neverReady })
}
