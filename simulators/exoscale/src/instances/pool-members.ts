import { randomString } from '@tenon/runtime'
import type { CloudContext, InstancePool } from '../zone/cloud-state.ts'
import type { Instance } from './instance.ts'
import type { FaultEffect } from '../faults.ts'
import type { InstanceLife } from './instance-life.ts'
import { addInstance, antiAffinityGroupSize } from './new-instance.ts'
import { failed, type OperationOutcome, succeeded } from './operation-outcome.ts'

const suffixAlphabet = 'abcdefghijklmnopqrstuvwxyz'

/** Adds running members to a pool, as many as capacity allows. */
export function addMembers(
  context: CloudContext,
  life: InstanceLife,
  pool: InstancePool,
  count: number,
  effects: readonly FaultEffect[],
): OperationOutcome {
  const { instances } = context.state
  for (let index = 0; index < count; index++) {
    const full = pool.antiAffinityGroupIds.find(
      (id) => instances.inAntiAffinityGroup(id).length >= antiAffinityGroupSize,
    )
    if (full !== undefined) return failed('conflict', `anti-affinity group ${full} is full`)
    const member = addInstance(context, memberSpec(context, pool), effects)
    const outcome = life.place(member)
    if (outcome.state === 'failure') {
      life.remove(member)
      return outcome
    }
    life.powerOn(member)
  }
  return succeeded
}

/** Removes members from a pool and destroys them. */
export function removeMembers(life: InstanceLife, members: readonly Instance[]): void {
  for (const member of members) life.remove(member)
}

function memberSpec({ random }: CloudContext, pool: InstancePool) {
  const suffix = `${randomString(random, 5, suffixAlphabet)}-${randomString(random, 5, suffixAlphabet)}`
  return {
    name: `${pool.instancePrefix}-${suffix}`,
    type: pool.type,
    template: pool.template,
    diskSizeGib: pool.diskSizeGib,
    labels: {},
    userData: pool.userData,
    securityGroupIds: pool.securityGroupIds,
    antiAffinityGroupIds: pool.antiAffinityGroupIds,
    sshKeys: [],
    publicIpAssignment: 'inet4' as const,
    instancePoolId: pool.id,
  }
}
