import type { Call } from '../api/call.ts'
import type { CloudContext } from '../zone/cloud-state.ts'
import type { Instance } from './instance.ts'
import { failed, type OperationOutcome } from './operation-outcome.ts'
import type { OperationPlan } from './operations.ts'
import { notFound } from '../api/refusal.ts'

/** Result of an operation whose instance was deleted before it ended. */
export const interrupted: OperationOutcome = failed('interrupted', 'the instance was deleted meanwhile')

/** The part of a plan that is the same for every operation on an instance. */
export function instancePlan(call: Call, instance: Instance): Omit<OperationPlan, 'complete'> {
  return {
    operation: call.operation,
    effects: call.effects,
    instance,
    reference: { id: instance.id, command: 'get-instance', path: `/instance/${instance.id}` },
  }
}

/** The instance that the path names. */
export function instanceOf(context: CloudContext, call: Call): Instance {
  return instanceById(context, call.parameters['id'] ?? '')
}

/** An instance by its id, or 404. */
export function instanceById(context: CloudContext, id: string): Instance {
  const instance = context.state.instances.get(id)
  if (instance === undefined) throw notFound('instance', id)
  return instance
}
