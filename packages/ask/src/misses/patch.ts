/** Changes as patches for kubectl. */
import { controllerOf, type Pod, podGroupKinds } from '@tenon/api'
import type { Operation } from 'rfc6902'
import type { Change } from './change.ts'

export interface ObjectPatch {
  /** As kubectl names it, such as `deployment/web`. */
  readonly object: string
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string
  readonly operations: readonly Operation[]
}

const ofKubernetes = `podgroups.${podGroupKinds.kubernetes[0]?.group ?? ''}`

/**
 * @returns undefined if no patch can do it: a NodePool is not ready, or an immutable claim or PodGroup has to
 * be recreated.
 */
export function patchOf(change: Change, pod: Pod): ObjectPatch | undefined {
  const { operations, target } = change
  if (operations.length === 0 || target.kind.startsWith('resourceClaim')) return undefined
  if (target.kind === 'nodePool') return { object: `nodepool/${target.name}`, operations }
  const namespace = pod.metadata.namespace ?? 'default'
  if (target.kind === 'podGroup') {
    const [resource = '', , name = ''] = target.id.split('/')
    // PodGroups of Kubernetes are immutable.
    if (resource === ofKubernetes) return undefined
    return { object: `${resource.replace(/^podgroups/, 'podgroup')}/${name}`, namespace, operations }
  }
  const workload = workloadOf(pod)
  // Most fields of a pod are immutable: it has to be recreated.
  if (workload === undefined) return { object: `pod/${pod.metadata.name}`, namespace, operations }
  const inTemplate = operations.map((each) => ({ ...each, path: `${workload.template}${each.path}` }))
  return { object: workload.object, namespace, operations: inTemplate }
}

/** The workload and the path of its pod template; undefined for a pod without a workload. */
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

/** The command that applies the patch, quoted for a POSIX shell. */
export function patchCommand({ object, namespace, operations }: ObjectPatch): string {
  const patch = JSON.stringify(operations).replaceAll("'", String.raw`'\''`)
  const where = namespace === undefined ? '' : ` -n ${namespace}`
  return `kubectl patch ${object}${where} --type=json -p '${patch}'`
}
