import type { Pod } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { ServerContext, WriteOptions } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import { badRequest, conflict, notFound } from '../http/status.ts'
import { commit, readObject, timestamp, tracked, withMetadata } from './writing.ts'

export interface BindingRequest {
  readonly namespace: string | undefined
  readonly podName: string
  readonly nodeName: string
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Assigns a pod to a node.
 * @throws ApiError 409 if it has a node, has scheduling gates or is terminating.
 */
export function bindPod(
  ctx: ServerContext,
  pods: Served,
  request: BindingRequest,
  options: WriteOptions,
): StoredObject {
  const old = readObject(ctx, pods, { namespace: request.namespace, name: request.podName })
  if (old === undefined) throw notFound(pods.definition, request.podName)
  if (request.nodeName === '') throw badRequest('target.name: Required value')
  refuseUnbindable(old as unknown as Pod, request)
  const pod = old as unknown as Pod
  const conditions = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'PodScheduled')
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timestamp(ctx),
  }
  const bound = withMetadata(
    {
      ...old,
      spec: { ...pod.spec, nodeName: request.nodeName },
      status: { ...pod.status, conditions: [...conditions, scheduled] },
    },
    {
      labels: { ...old.metadata.labels, ...request.labels },
      annotations: { ...old.metadata.annotations, ...request.annotations },
    },
  )
  return commit(
    ctx,
    pods,
    tracked(ctx, { served: pods, before: old, after: bound, subresource: 'binding' }, options),
    options,
  )
}

function refuseUnbindable(pod: Pod, request: BindingRequest): void {
  const refuse = (why: string) =>
    conflict({ group: '', plural: 'pods/binding', kind: 'Binding' }, request.podName, why)
  if (request.uid !== undefined && request.uid !== pod.metadata.uid)
    throw refuse(
      `Precondition failed: UID in precondition: ${request.uid}, UID in object meta: ${pod.metadata.uid}`,
    )
  if (pod.metadata.deletionTimestamp !== undefined)
    throw refuse(`pod ${request.podName} is being deleted, cannot be assigned to a host`)
  if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== '')
    throw refuse(`pod ${request.podName} is already assigned to node "${pod.spec.nodeName}"`)
  if ((pod.spec.schedulingGates ?? []).length > 0)
    throw refuse(`pod ${request.podName} has non-empty .spec.schedulingGates`)
}
