import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { CloudState, InstancePool } from '../zone/cloud-state.ts'
import type { Instance } from '../instances/instance.ts'
import { failed, succeeded } from '../instances/operation-outcome.ts'
import type { OperationPlan } from '../instances/operations.ts'
import { addMembers, removeMembers } from '../instances/pool-members.ts'
import { checkQuotas } from '../zone/quotas.ts'
import { invalid, notFound, refused } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'

/** Instance pools: get, list, scale, evict. */
export function poolRoutes(parts: RouteParts): Route[] {
  const { state } = parts.context
  return [
    {
      operation: 'list-instance-pools',
      method: 'GET',
      path: '/instance-pool',
      handle: () => ({
        'instance-pools': [...state.instancePools.values()].map((pool) => poolView(state, pool)),
      }),
    },
    {
      operation: 'get-instance-pool',
      method: 'GET',
      path: '/instance-pool/{id}',
      handle: (call) => poolView(state, poolOf(state, call)),
    },
    {
      operation: 'scale-instance-pool',
      method: 'PUT',
      path: '/instance-pool/{id}:scale',
      body: 'required',
      handle: (call) => {
        const pool = poolOf(state, call)
        return scalePool(parts, call, pool, referenceOf(pool))
      },
    },
    {
      operation: 'evict-instance-pool-members',
      method: 'PUT',
      path: '/instance-pool/{id}:evict',
      body: 'required',
      handle: (call) => {
        const pool = poolOf(state, call)
        return evictMembers(parts, call, pool, referenceOf(pool))
      },
    },
  ]
}

type Reference = OperationPlan['reference']

/** Resizes a pool to the size in the body; the newest members are removed first. */
export function scalePool(parts: RouteParts, call: Call, pool: InstancePool, reference: Reference) {
  const { context, operations, life } = parts
  const { instances } = context.state
  const body = new BodyReader(call.body)
  const size = body.requiredInteger('size', { min: 0, max: 10_000 })
  body.finish()
  demandRunning(pool)
  const change = size - instances.inPool(pool.id).length
  if (change > 0) checkQuotas(context, pool.type, change)
  pool.state = change > 0 ? 'scaling-up' : 'scaling-down'
  pool.size = size
  return operations.start({
    operation: call.operation,
    effects: call.effects,
    reference,
    complete: () => {
      const members = instances.inPool(pool.id)
      const missing = size - members.length
      const outcome = missing > 0 ? addMembers(context, life, pool, missing, call.effects) : succeeded
      if (missing < 0) removeMembers(life, members.slice(missing))
      if (outcome.state === 'success') settle(context.state, pool)
      return outcome
    },
    abandon: () => {
      settle(context.state, pool)
    },
  })
}

/** Destroys the given members and reduces the pool's size by their number. */
export function evictMembers(parts: RouteParts, call: Call, pool: InstancePool, reference: Reference) {
  const { context, operations, life } = parts
  const body = new BodyReader(call.body)
  const ids = body.ids('instances')
  body.finish()
  demandRunning(pool)
  const members = context.state.instances.inPool(pool.id).filter((member) => ids.includes(member.id))
  if (ids.length === 0) throw invalid(['instances must not be empty'])
  if (members.length < ids.length) throw invalid(['instances must be members of the pool'])
  pool.state = 'scaling-down'
  return operations.start({
    operation: call.operation,
    effects: call.effects,
    reference,
    complete: () => {
      if (members.some((member) => member.state === 'destroyed')) {
        return failed('not-found', 'a member was deleted meanwhile')
      }
      removeMembers(life, members)
      settle(context.state, pool)
      return succeeded
    },
    abandon: () => {
      settle(context.state, pool)
    },
  })
}

/** After a member was deleted individually, the pool's size is the number of remaining members. */
export function forgetMember(state: CloudState, { instancePoolId }: Instance): void {
  const pool = instancePoolId === undefined ? undefined : state.instancePools.get(instancePoolId)
  if (pool?.state === 'running') settle(state, pool)
}

function settle(state: CloudState, pool: InstancePool): void {
  pool.state = 'running'
  pool.size = state.instances.inPool(pool.id).length
}

function demandRunning(pool: InstancePool): void {
  if (pool.state !== 'running') throw refused(409, `instance pool ${pool.id} is ${pool.state}`)
}

function poolOf(state: CloudState, call: Call): InstancePool {
  const id = call.parameters['id'] ?? ''
  const pool = state.instancePools.get(id)
  if (pool === undefined) throw notFound('instance-pool', id)
  return pool
}

function referenceOf({ id }: InstancePool): Reference {
  return { id, command: 'get-instance-pool', path: `/instance-pool/${id}` }
}

function poolView(state: CloudState, pool: InstancePool) {
  const { nodepoolId } = pool
  return {
    id: pool.id,
    name: pool.name,
    state: pool.state,
    // The API has no pool of size 0.
    ...(pool.size > 0 && { size: pool.size }),
    'instance-type': { id: pool.type.id },
    template: { id: pool.template.id },
    'disk-size': pool.diskSizeGib,
    'instance-prefix': pool.instancePrefix,
    'min-available': pool.minAvailable,
    'public-ip-assignment': 'inet4',
    'security-groups': pool.securityGroupIds.map((id) => ({ id })),
    'anti-affinity-groups': pool.antiAffinityGroupIds.map((id) => ({ id })),
    'private-networks': [],
    'elastic-ips': [],
    'ssh-keys': [],
    labels: {},
    instances: state.instances.inPool(pool.id).map((instance) => ({ id: instance.id })),
    ...(pool.userData === undefined ? {} : { 'user-data': pool.userData }),
    ...(nodepoolId === undefined ? {} : { manager: { id: nodepoolId, type: 'sks-nodepool' } }),
  }
}
