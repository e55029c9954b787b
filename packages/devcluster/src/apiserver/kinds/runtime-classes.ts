import {
  type KubeObject,
  type Pod,
  type PodSpec,
  type ResourceList,
  type Toleration,
  ownValue,
} from '@tenon/api'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import { sameJson } from '../equality.ts'
import type { Served } from './registry.ts'
import { forbidden } from '../http/status.ts'

interface RuntimeClass extends KubeObject {
  readonly overhead?: { readonly podFixed?: ResourceList }
  readonly scheduling?: {
    readonly nodeSelector?: Readonly<Record<string, string>>
    readonly tolerations?: readonly Toleration[]
  }
}

/**
 * Adds the overhead and node selection of its RuntimeClass to a pod.
 * @throws ApiError 403 if they conflict with the pod's own.
 */
export function withRuntimeClass(ctx: ServerContext, served: Served, pod: Pod): Pod {
  const { overhead, runtimeClassName } = pod.spec
  const refuse = (why: string) => forbidden(served.definition, pod.metadata.name, why)
  const hasOverhead = Object.keys(overhead ?? {}).length > 0
  if (runtimeClassName === undefined || runtimeClassName === '') {
    if (hasOverhead)
      throw refuse('pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
    return pod
  }
  const found = ctx.store.collection('runtimeclasses.node.k8s.io').get(keyOf(undefined, runtimeClassName))
  if (found === undefined) throw refuse(`pod rejected: RuntimeClass "${runtimeClassName}" not found`)
  const { overhead: fixed, scheduling = {} } = found as unknown as RuntimeClass
  const podFixed = fixed?.podFixed
  if (hasOverhead && !sameJson(overhead, podFixed))
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  const conflict = selectorConflict(scheduling.nodeSelector, pod.spec.nodeSelector)
  if (conflict !== undefined) throw refuse(conflict)
  const spec = { ...pod.spec, ...(podFixed !== undefined && { overhead: podFixed }) }
  return { ...pod, spec: { ...spec, ...nodesOf(pod, scheduling) } }
}

type Selector = Readonly<Record<string, string>> | undefined

function selectorConflict(wanted: Selector, own: Selector): string | undefined {
  for (const [key, value] of Object.entries(wanted ?? {})) {
    if (own === undefined || !Object.hasOwn(own, key) || ownValue(own, key) === value) continue
    return `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${ownValue(own, key)}`
  }
  return undefined
}

/** Selector and tolerations of both. */
function nodesOf(
  { spec }: Pod,
  { nodeSelector, tolerations = [] }: NonNullable<RuntimeClass['scheduling']>,
): Partial<PodSpec> {
  const own = spec.tolerations ?? []
  const added = tolerations.filter((toleration) => !own.some((other) => sameJson(other, toleration)))
  return {
    ...(nodeSelector !== undefined && { nodeSelector: { ...spec.nodeSelector, ...nodeSelector } }),
    ...(added.length > 0 && { tolerations: [...own, ...added] }),
  }
}
