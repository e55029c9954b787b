/** Admission of PodGroups, and of pods with a PodGroup (gangs.md 5.2). */
import type { Pod, PodGroup } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { podGroupFinalizer } from '../../pod-group-kind.ts'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import { forbidden } from '../http/status.ts'
import type { Served } from '../kinds/registry.ts'

interface Workload {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly spec?: { readonly podGroupTemplates?: readonly { readonly name?: string }[] }
}

type GroupSpec = NonNullable<PodGroup['spec']> & {
  readonly priorityClassName?: string
  readonly podGroupTemplateRef?: {
    readonly workload?: { readonly workloadName?: string; readonly podGroupTemplateName?: string }
  }
}

/**
 * Defaults and finalizer of a new group.
 * @throws ApiError.
 */
export function admitPodGroup(ctx: ServerContext, served: Served, object: StoredObject): StoredObject {
  const spec = object['spec'] as GroupSpec | undefined
  // Validation refuses other types later.
  if (typeof spec !== 'object' || Array.isArray(spec)) return object
  const { finalizers = [] } = object.metadata
  const { schedulingConstraints, ...others } = spec
  return {
    ...object,
    metadata: { ...object.metadata, finalizers: [...new Set([...finalizers, podGroupFinalizer])] },
    spec: {
      ...others,
      // Without the feature gate the field is dropped silently.
      ...(ctx.gates.topologyAwareWorkloadScheduling &&
        schedulingConstraints !== undefined && { schedulingConstraints }),
      ...priorityOf(ctx, served, object, spec),
    },
  }
}

/**
 * Refuses a group whose Workload template does not exist.
 * @throws ApiError.
 */
export function refuseUnknownTemplate(ctx: ServerContext, served: Served, object: StoredObject): void {
  if (served.collection !== 'podgroups.scheduling.k8s.io') return
  const { metadata } = object
  const spec = object['spec'] as GroupSpec | undefined
  const { workloadName, podGroupTemplateName } = spec?.podGroupTemplateRef?.workload ?? {}
  if (workloadName === undefined) return
  const refuse = (why: string): never => {
    throw forbidden(served.definition, metadata.name, why)
  }
  const key = keyOf(metadata.namespace, workloadName)
  const workload = ctx.store.collection('workloads.scheduling.k8s.io').get(key) as Workload | undefined
  if (workload === undefined) return refuse(`Workload ${workloadName} does not exist`)
  if (workload.metadata.deletionTimestamp !== undefined)
    return refuse(`Workload ${workloadName} is being deleted`)
  const templates = workload.spec?.podGroupTemplates ?? []
  if (!templates.some(({ name }) => name === podGroupTemplateName))
    refuse(`Workload ${workloadName} has no podGroupTemplate ${podGroupTemplateName ?? ''}`)
}

function priorityOf(
  ctx: ServerContext,
  served: Served,
  { metadata }: StoredObject,
  { priority: given, priorityClassName }: GroupSpec,
): { readonly priority?: number } {
  const isNamed = typeof priorityClassName === 'string' && priorityClassName !== ''
  const found = isNamed
    ? ctx.store.collection('priorityclasses.scheduling.k8s.io').get(keyOf(undefined, priorityClassName))
    : undefined
  if (isNamed && found === undefined) {
    const why = `no PriorityClass with name ${priorityClassName} was found`
    throw forbidden(served.definition, metadata.name, why)
  }
  const priority = typeof found?.['value'] === 'number' ? found['value'] : 0
  if (typeof given === 'number' && given !== priority) {
    const why = `priority set in the pod group (${given}) must match the priority computed (${priority}) based on the priority class set in the spec`
    throw forbidden(served.definition, metadata.name, why)
  }
  return found === undefined || (given !== undefined && typeof given !== 'number') ? {} : { priority }
}

/** Without the feature gate, the fields of new pods are dropped silently. */
export function withoutDisabledFields(ctx: ServerContext, spec: Pod['spec']): Pod['spec'] {
  if (ctx.gates.genericWorkload || spec.schedulingGroup === undefined) return spec
  const { schedulingGroup: _, ...others } = spec
  return others
}
