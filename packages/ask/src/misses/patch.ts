/** Changes as patches that kubectl takes. */
import { controllerOf, type Pod, podGroupKinds } from '@tenon/api'
import type { Operation } from 'rfc6902'
import type { Change } from './change.ts'

/** An object and its JSON Patch. */
export interface ObjectPatch {
  /** As kubectl names it, such as `deployment/web`. */
  readonly object: string
  /** Absent of objects without one. */
  readonly namespace?: string
  readonly operations: readonly Operation[]
}

const ofKubernetes = `podgroups.${podGroupKinds.kubernetes[0]?.group ?? ''}`

/**
 * @returns undefined for what no patch achieves: a NodePool that is not ready, a claim, or a PodGroup of Kubernetes, that
 *   has to be made again.
 */
export function patchOf(change: Change, pod: Pod): ObjectPatch | undefined {
  const { operations, target } = change
  if (operations.length === 0 || target.kind.startsWith('resourceClaim')) return undefined
  if (target.kind === 'nodePool') return { object: `nodepool/${target.name}`, operations }
  const namespace = pod.metadata.namespace ?? 'default'
  if (target.kind === 'podGroup') {
    const [resource = '', , name = ''] = target.id.split('/')
    // What is said of one of Kubernetes does not change.
    if (resource === ofKubernetes) return undefined
    return { object: `${resource.replace(/^podgroups/, 'podgroup')}/${name}`, namespace, operations }
  }
  const workload = workloadOf(pod)
  // Most fields of a pod cannot be changed: the pod has to be made again with them.
  if (workload === undefined) return { object: `pod/${pod.metadata.name}`, namespace, operations }
  const inTemplate = operations.map((each) => ({ ...each, path: `${workload.template}${each.path}` }))
  return { object: workload.object, namespace, operations: inTemplate }
}

/** Where a workload keeps the template of its pods; undefined for a pod of its own. */
function workloadOf(pod: Pod): { readonly object: string; readonly template: string } | undefined {
  const owner = controllerOf(pod)
  if (owner === undefined) return undefined
  const { kind, name } = owner
  const hash = pod.metadata.labels?.['pod-template-hash']
  if (kind === 'ReplicaSet' && hash !== undefined && name.endsWith(`-${hash}`))
    return { object: `deployment/${name.slice(0, -hash.length - 1)}`, template: '/spec/template' }
  if (kind === 'CronJob') return { object: `cronjob/${name}`, template: '/spec/jobTemplate/spec/template' }
  return { object: `${kind.toLowerCase()}/${name}`, template: '/spec/template' }
}

/** The command that applies the patch, for a POSIX shell. */
export function patchCommand({ object, namespace, operations }: ObjectPatch): string {
  const patch = JSON.stringify(operations).replaceAll("'", String.raw`'\''`)
  const where = namespace === undefined ? '' : ` -n ${namespace}`
  return `kubectl patch ${object}${where} --type=json -p '${patch}'`
}
