/** Changes without a call of the API: instances fail, and other users change pools. */
import type { InstanceLife } from './instances/instance-life.ts'
import { forgetMember } from './api/pool-routes.ts'
import type { Instance, InstanceState } from './instances/instance.ts'
import { addMembers, removeMembers } from './instances/pool-members.ts'
import type { CloudContext, InstancePool } from './zone/cloud-state.ts'

export interface Interventions {
  /**
   * Sets the state of an instance, such as `error` or `stopped`. It boots in state `running`, and loses power
   * otherwise.
   */
  setInstanceState(instanceId: string, state: InstanceState): void
  /** Another user deletes an instance; its pool shrinks by one. */
  deleteInstance(instanceId: string): void
  setPoolState(poolId: string, state: InstancePool['state']): void
  /** Another user resizes a pool at once. The newest members are removed first. */
  resizePool(poolId: string, size: number): void
  /** Deletes a pool with its members, and its nodepool. */
  deletePool(poolId: string): void
}

export function interventionsIn(context: CloudContext, life: InstanceLife): Interventions {
  const { instancePools, instances, cluster } = context.state
  const poolOf = (id: string): InstancePool => {
    const pool = instancePools.get(id)
    if (pool === undefined) throw new Error(`there is no instance pool ${id}`)
    return pool
  }
  const instanceOf = (id: string): Instance => {
    const instance = instances.get(id)
    if (instance === undefined) throw new Error(`there is no instance ${id}`)
    return instance
  }
  return {
    setInstanceState(id, state) {
      const instance = instanceOf(id)
      if (state === 'running') {
        life.powerOn(instance)
        return
      }
      life.powerOff(instance)
      instance.state = state
    },
    deleteInstance(id) {
      const instance = instanceOf(id)
      life.remove(instance)
      forgetMember(context.state, instance)
    },
    setPoolState(id, state) {
      poolOf(id).state = state
    },
    resizePool(id, size) {
      const pool = poolOf(id)
      const members = instances.inPool(id)
      if (size < members.length) removeMembers(life, members.slice(size))
      else addMembers(context, life, pool, size - members.length, [])
      pool.size = instances.inPool(id).length
    },
    deletePool(id) {
      poolOf(id)
      removeMembers(life, instances.inPool(id))
      instancePools.delete(id)
      const at = cluster.nodepools.findIndex(({ instancePoolId }) => instancePoolId === id)
      if (at >= 0) cluster.nodepools.splice(at, 1)
    },
  }
}
