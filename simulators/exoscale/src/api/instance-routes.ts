import { ownValue } from '@tenon/api'
import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { Instance } from '../instances/instance.ts'
import { instanceOf, instancePlan, interrupted } from '../instances/instance-plan.ts'
import { detailedInstance } from '../instances/instance-view.ts'
import { addInstance, assignAddresses, readInstanceSpec } from '../instances/new-instance.ts'
import { succeeded } from '../instances/operation-outcome.ts'
import { forgetMember } from './pool-routes.ts'
import type { RouteParts } from './route-parts.ts'
import { checkQuotas } from '../zone/quotas.ts'
import { refused } from './refusal.ts'

/** create, list, get and delete of instances. */
export function instanceRoutes(parts: RouteParts): Route[] {
  const { context, listed } = parts
  return [
    {
      operation: 'list-instances',
      method: 'GET',
      path: '/instance',
      handle: (call) => ({
        instances: listed.views((instance) => isAsked(instance, call.query)),
      }),
    },
    {
      operation: 'get-instance',
      method: 'GET',
      path: '/instance/{id}',
      handle: (call) => detailedInstance(instanceOf(context, call)),
    },
    {
      operation: 'create-instance',
      method: 'POST',
      path: '/instance',
      body: 'required',
      handle: (call) => createInstance(parts, call),
    },
    {
      operation: 'delete-instance',
      method: 'DELETE',
      path: '/instance/{id}',
      handle: (call) => deleteInstance(parts, call),
    },
    {
      operation: 'update-instance',
      method: 'PUT',
      path: '/instance/{id}',
      body: 'required',
      handle: (call) => updateInstance(parts, call),
    },
  ]
}

function createInstance({ context, operations, life }: RouteParts, call: Call) {
  const spec = readInstanceSpec(context, call)
  checkQuotas(context, spec.type)
  const instance = addInstance(context, spec, call.effects)
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state !== 'starting') return interrupted
      const outcome = life.place(instance)
      if (outcome.state === 'failure') return outcome
      if (call.body['auto-start'] === false) instance.state = 'stopped'
      else life.powerOn(instance)
      return succeeded
    },
    abandon: () => {
      if (instance.state !== 'starting') return
      if (context.settings.failedInstances === 'error') instance.state = 'error'
      else life.remove(instance)
    },
  })
}

function deleteInstance({ context, operations, life, listed }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  if (instance.state === 'destroying') throw refused(409, `instance ${instance.id} is being destroyed`)
  const before = instance.state
  life.powerOff(instance)
  instance.state = 'destroying'
  listed.deletionAsked(instance, before)
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      life.remove(instance)
      forgetMember(context.state, instance)
      return succeeded
    },
    abandon: () => {
      listed.deletionFailed(instance)
      if (before === 'running') life.powerOn(instance)
      else instance.state = before === 'stopped' ? 'stopped' : 'error'
    },
  })
}

function updateInstance({ context, operations }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  const body = new BodyReader(call.body)
  const name = body.string('name', { min: 1, max: 255 })
  const userData = body.string('user-data', { min: 1, max: 32_768 })
  const labels = body.labels('labels', true)
  const assignment = body.oneOf('public-ip-assignment', ['inet4', 'dual', 'none'])
  body.finish()
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state === 'destroyed') return interrupted
      instance.name = name ?? instance.name
      instance.userData = userData ?? instance.userData
      if (assignment !== undefined) assignAddresses(context, instance, assignment)
      if (labels !== undefined) instance.labels = labels ?? {}
      return succeeded
    },
  })
}

function isAsked(instance: Instance, query: URLSearchParams): boolean {
  const managerId = query.get('manager-id')
  if (managerId !== null && instance.instancePoolId !== managerId) return false
  if (query.get('manager-type') === 'instance-pool' && instance.instancePoolId === undefined) return false
  const address = query.get('ip-address')
  if (address !== null && instance.publicIp !== address && instance.ipv6Address !== address) return false
  return (query.get('labels') ?? '')
    .split(' ')
    .filter((pair) => pair !== '')
    .every((pair) => {
      const equals = pair.indexOf('=')
      return equals > 0 && ownValue(instance.labels, pair.slice(0, equals)) === pair.slice(equals + 1)
    })
}
