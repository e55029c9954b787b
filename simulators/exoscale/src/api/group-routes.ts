import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { AntiAffinityGroup, CloudState, SecurityGroup } from '../zone/cloud-state.ts'
import { instanceById } from '../instances/instance-plan.ts'
import { failed, succeeded } from '../instances/operation-outcome.ts'
import { invalid, notFound, refused } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'

/** Security groups with attach and detach, and anti-affinity groups. */
export function groupRoutes(parts: RouteParts): Route[] {
  const { state } = parts.context
  return [
    {
      operation: 'list-security-groups',
      method: 'GET',
      path: '/security-group',
      handle: (call) => ({ 'security-groups': listSecurityGroups(state, call) }),
    },
    {
      operation: 'get-security-group',
      method: 'GET',
      path: '/security-group/{id}',
      handle: (call) => securityGroupView(securityGroupOf(state, call)),
    },
    {
      operation: 'attach-instance-to-security-group',
      method: 'PUT',
      path: '/security-group/{id}:attach',
      body: 'required',
      handle: (call) => changeMembership(parts, call, true),
    },
    {
      operation: 'detach-instance-from-security-group',
      method: 'PUT',
      path: '/security-group/{id}:detach',
      body: 'required',
      handle: (call) => changeMembership(parts, call, false),
    },
    {
      operation: 'list-anti-affinity-groups',
      method: 'GET',
      path: '/anti-affinity-group',
      handle: () => ({
        'anti-affinity-groups': [...state.antiAffinityGroups.values()].map(antiAffinityGroupView),
      }),
    },
    {
      operation: 'get-anti-affinity-group',
      method: 'GET',
      path: '/anti-affinity-group/{id}',
      handle: (call) => getAntiAffinityGroup(state, call),
    },
  ]
}

/** Every group is private; there are no public ones. */
function listSecurityGroups(state: CloudState, call: Call) {
  const visibility = call.query.get('visibility') ?? 'private'
  if (visibility === 'public') return []
  if (visibility !== 'private') throw invalid(['visibility must be one of private, public'])
  return [...state.securityGroups.values()].map(securityGroupView)
}

function securityGroupOf(state: CloudState, call: Call): SecurityGroup {
  const id = call.parameters['id'] ?? ''
  const group = state.securityGroups.get(id)
  if (group === undefined) throw notFound('security-group', id)
  return group
}

function securityGroupView({ id, name, description }: SecurityGroup) {
  return { id, name, description, visibility: 'private', 'external-sources': [], rules: [] }
}

function changeMembership({ context, operations }: RouteParts, call: Call, attach: boolean) {
  const group = securityGroupOf(context.state, call)
  const body = new BodyReader(call.body)
  const instanceId = body.requiredReference('instance')
  body.finish()
  const instance = instanceById(context, instanceId)
  if (instance.securityGroupIds.includes(group.id) === attach) {
    const already = attach ? 'already attached' : 'not attached'
    throw refused(409, `instance ${instanceId} is ${already} to security group ${group.id}`)
  }
  return operations.start({
    operation: call.operation,
    effects: call.effects,
    instance,
    reference: { id: group.id, command: 'get-security-group', path: `/security-group/${group.id}` },
    complete: () => {
      if (instance.state === 'destroyed') return failed('not-found', `instance ${instanceId} not found`)
      const others = instance.securityGroupIds.filter((id) => id !== group.id)
      instance.securityGroupIds = attach ? [...others, group.id] : others
      return succeeded
    },
  })
}

function antiAffinityGroupView({ id, name, description }: AntiAffinityGroup) {
  return { id, name, description }
}

function getAntiAffinityGroup(state: CloudState, call: Call) {
  const id = call.parameters['id'] ?? ''
  const group = state.antiAffinityGroups.get(id)
  if (group === undefined) throw notFound('anti-affinity-group', id)
  const instances = state.instances.inAntiAffinityGroup(id).map((instance) => ({ id: instance.id }))
  return { ...antiAffinityGroupView(group), instances }
}
