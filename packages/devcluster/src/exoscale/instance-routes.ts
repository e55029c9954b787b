import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { CloudContext, Instance } from './cloud-state.ts'
import type { InstanceLife } from './instance-life.ts'
import { detailedInstance, listedInstance } from './instance-view.ts'
import { newInstance } from './new-instance.ts'
import { type OperationOutcome, type Operations, succeeded } from './operations.ts'
import { notFound, refused } from './refusal.ts'
import { checkQuotas } from './quotas.ts'

/** create, list, get and delete of instances. */
export function instanceRoutes(context: CloudContext, operations: Operations, life: InstanceLife): Route[] {
  const { state } = context
  return [
    {
      operation: 'list-instances',
      method: 'GET',
      path: '/instance',
      handle: (call) => ({
        instances: [...state.instances.values()]
          .filter((instance) => isAsked(instance, call.query))
          .map(listedInstance),
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
      handle: (call) => createInstance(context, operations, life, call),
    },
    {
      operation: 'delete-instance',
      method: 'DELETE',
      path: '/instance/{id}',
      handle: (call) => deleteInstance(context, operations, life, call),
    },
    {
      operation: 'update-instance',
      method: 'PUT',
      path: '/instance/{id}',
      body: 'required',
      handle: (call) => updateInstance(context, operations, call),
    },
  ]
}

function createInstance(context: CloudContext, operations: Operations, life: InstanceLife, call: Call) {
  const instance = newInstance(context, call)
  checkQuotas(context, instance.type)
  context.state.instances.set(instance.id, instance)
  return operations.start({
    ...planOf(call, instance),
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

function deleteInstance(context: CloudContext, operations: Operations, life: InstanceLife, call: Call) {
  const instance = instanceOf(context, call)
  if (instance.state === 'destroying') throw refused(409, `instance ${instance.id} is being destroyed`)
  const before = instance.state
  life.powerOff(instance)
  instance.state = 'destroying'
  return operations.start({
    ...planOf(call, instance),
    complete: () => {
      life.remove(instance)
      return succeeded
    },
    abandon: () => {
      if (before === 'running') life.powerOn(instance)
      else instance.state = before
    },
  })
}

function updateInstance(context: CloudContext, operations: Operations, call: Call) {
  const instance = instanceOf(context, call)
  const body = new BodyReader(call.body)
  const name = body.string('name', { min: 1, max: 255 })
  const userData = body.string('user-data', { min: 1, max: 32_768 })
  const labels = body.labels('labels', true)
  const assignment = body.oneOf('public-ip-assignment', ['inet4', 'dual', 'none'])
  body.finish()
  return operations.start({
    ...planOf(call, instance),
    complete: () => {
      instance.name = name ?? instance.name
      instance.userData = userData ?? instance.userData
      instance.publicIpAssignment = assignment ?? instance.publicIpAssignment
      if (labels !== undefined) instance.labels = labels ?? {}
      return succeeded
    },
  })
}

const interrupted: OperationOutcome = {
  state: 'failure',
  reason: 'interrupted',
  message: 'the instance was deleted meanwhile',
}

function planOf(call: Call, instance: Instance) {
  return {
    operation: call.operation,
    effects: call.effects,
    reference: { id: instance.id, command: 'get-instance', path: `/instance/${instance.id}` },
  }
}

/** The instance that the path names. */
export function instanceOf(context: CloudContext, call: Call): Instance {
  const id = call.parameters['id'] ?? ''
  const instance = context.state.instances.get(id)
  if (instance === undefined) throw notFound('instance', id)
  return instance
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
      return equals > 0 && instance.labels[pair.slice(0, equals)] === pair.slice(equals + 1)
    })
}
