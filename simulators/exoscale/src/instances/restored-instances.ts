import { instanceTypes } from '../zone/catalogue.ts'
import type { CloudContext, CloudState } from '../zone/cloud-state.ts'
import type { Instance } from './instance.ts'
import type { InstanceLife } from './instance-life.ts'
import type { InstanceRecord } from './kept-instances.ts'

/**
 * Restores the instances of an earlier run. Operations in progress count as done.
 * @throws Error if the catalogue no longer has an instance's type.
 */
export function restoreInstances({ state, kept }: CloudContext, life: InstanceLife): void {
  const records = (kept?.all() ?? []).toSorted((a, b) => a.createdAtMs - b.createdAtMs)
  state.publicAddresses.keep(new Set(records.flatMap(({ publicIp }) => publicIp ?? [])))
  for (const record of records) resume(life, record, addRecord(state, record))
}

function addRecord(state: CloudState, record: InstanceRecord): Instance {
  const { type: typeName, hasJoined: _, neverBoots, neverJoins, neverReady, placed, ...rest } = record
  const type = instanceTypes.find(({ name }) => name === typeName)
  if (type === undefined) throw new Error(`instance ${record.id}: unknown instance type ${typeName}`)
  const instance: Instance = {
    ...rest,
    // JSON has no undefined.
    userData: record.userData,
    publicIp: record.publicIp,
    ipv6Address: record.ipv6Address,
    instancePoolId: record.instancePoolId,
    type,
    placed: false,
    system: {
      boot: 0,
      phase: 'off',
      whyNotJoined: undefined,
      kubelet: undefined,
      neverBoots,
      neverJoins,
      neverReady,
    },
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
