import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { Instance, InstanceState } from '../instances/instance.ts'
import { instanceOf, instancePlan, interrupted } from '../instances/instance-plan.ts'
import { succeeded } from '../instances/operation-outcome.ts'
import { invalid, refused } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'

/** start, stop and reboot of instances, and the reset of their fields. */
export function powerRoutes(parts: RouteParts): Route[] {
  return [
    {
      operation: 'start-instance',
      method: 'PUT',
      path: '/instance/{id}:start',
      body: 'required',
      handle: (call) => startInstance(parts, call),
    },
    {
      operation: 'stop-instance',
      method: 'PUT',
      path: '/instance/{id}:stop',
      handle: (call) => stopInstance(parts, call),
    },
    {
      operation: 'reboot-instance',
      method: 'PUT',
      path: '/instance/{id}:reboot',
      handle: (call) => rebootInstance(parts, call),
    },
    {
      operation: 'reset-instance-field',
      method: 'DELETE',
      path: '/instance/{id}/{field}',
      handle: (call) => resetField(parts, call),
    },
  ]
}

function startInstance({ context, operations, life }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  const body = new BodyReader(call.body)
  body.oneOf('rescue-profile', ['netboot', 'netboot-efi'])
  body.finish()
  demand(instance, 'stopped')
  instance.state = 'starting'
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state !== 'starting') return interrupted
      const outcome = life.place(instance)
      if (outcome.state === 'success') life.powerOn(instance)
      return outcome
    },
    abandon: () => {
      if (instance.state === 'starting') instance.state = 'stopped'
    },
  })
}

function stopInstance({ context, operations, life }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  demand(instance, 'running')
  instance.state = 'stopping'
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state !== 'stopping') return interrupted
      life.powerOff(instance)
      instance.state = 'stopped'
      return succeeded
    },
    abandon: () => {
      if (instance.state === 'stopping') instance.state = 'running'
    },
  })
}

function rebootInstance({ context, operations, life }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  demand(instance, 'running')
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state !== 'running') return interrupted
      life.powerOn(instance)
      return succeeded
    },
  })
}

function resetField({ context, operations }: RouteParts, call: Call) {
  const instance = instanceOf(context, call)
  if (call.parameters['field'] !== 'labels') throw invalid(['field must be labels'])
  return operations.start({
    ...instancePlan(call, instance),
    complete: () => {
      if (instance.state === 'destroyed') return interrupted
      instance.labels = {}
      return succeeded
    },
  })
}

function demand(instance: Instance, state: InstanceState): void {
  if (instance.state === state) return
  throw refused(409, `instance ${instance.id} is ${instance.state}, not ${state}`)
}
