/** The instances that outlive the process, as they are written down. */
import { instanceTypes } from './catalogue.ts'
import type { CloudContext, CloudState } from './cloud-state.ts'
import type { Instance } from './instance.ts'
import type { InstanceLife } from './instance-life.ts'

/** An instance as plain JSON data. */
export interface InstanceRecord extends Omit<Instance, 'type' | 'machine'> {
  /** `family.size` */
  readonly type: string
  /** A machine that has joined goes on as a node; any other boots anew. */
  readonly hasJoined: boolean
  readonly neverBoots: boolean
  readonly neverJoins: boolean
}

/** Where instances are written down. */
export interface KeptInstances {
  /** What an earlier run left, in any order. */
  all(): readonly InstanceRecord[]
  save(record: InstanceRecord): void
  remove(id: string): void
}

/** Writes an instance down as it is now. */
export function keepInstance(kept: KeptInstances | undefined, instance: Instance): void {
  if (kept === undefined) return
  if (instance.state === 'destroyed') {
    kept.remove(instance.id)
    return
  }
  const { type, machine, ...rest } = instance
  const { phase, neverBoots, neverJoins } = machine
  kept.save({ ...rest, type: type.name, hasJoined: phase === 'joined', neverBoots, neverJoins })
}

/**
 * Brings the instances of an earlier run back. Operations that were under way have happened meanwhile.
 * @throws Error when an instance is of a type that the catalogue no longer has.
 */
export function restoreInstances({ state, kept }: CloudContext, life: InstanceLife): void {
  const records = (kept?.all() ?? []).toSorted((a, b) => a.createdAtMs - b.createdAtMs)
  state.publicAddresses.keep(new Set(records.flatMap(({ publicIp }) => publicIp ?? [])))
  for (const record of records) resume(life, record, addRecord(state, record))
}

function addRecord(state: CloudState, record: InstanceRecord): Instance {
  const { type: typeName, hasJoined: _, neverBoots, neverJoins, placed, ...rest } = record
  const type = instanceTypes.find(({ name }) => name === typeName)
  if (type === undefined) throw new Error(`instance ${record.id}: unknown instance type ${typeName}`)
  const instance: Instance = {
    ...rest,
    // What is undefined is left out of JSON.
    userData: record.userData,
    publicIp: record.publicIp,
    ipv6Address: record.ipv6Address,
    instancePoolId: record.instancePoolId,
    type,
    placed: false,
    machine: { boot: 0, phase: 'off', whyNotJoined: undefined, kubelet: undefined, neverBoots, neverJoins },
  }
  state.instances.add(instance)
  if (placed) state.instances.place(instance)
  return instance
}

function resume(life: InstanceLife, { state, hasJoined }: InstanceRecord, instance: Instance): void {
  switch (state) {
    case 'running':
      if (hasJoined) life.resume(instance)
      else life.powerOn(instance)
      break
    case 'starting':
      if (life.place(instance).state === 'success') life.powerOn(instance)
      else life.remove(instance)
      break
    case 'stopping':
      instance.state = 'stopped'
      life.powerOff(instance)
      break
    case 'destroying':
      life.remove(instance)
      break
    case 'stopped':
    case 'migrating':
    case 'error':
    case 'expunging':
    case 'destroyed':
      break
  }
}
