/** Groups pending pods with equal reasons (ask.md 2). */
import { controllerOf, type Pod } from '@tenon/api'
import type { PodExplanation } from './pod.ts'

/** Pods with the same reason. */
export interface PodGroup {
  readonly code: string
  readonly pods: number
  /** `Deployment shop/web`, most pods first; pods without a controller by their own names. */
  readonly workloads: readonly { readonly name: string; readonly pods: number }[]
  /** The explanation of the first pod. */
  readonly example: PodExplanation
}

export interface ExplainedPod {
  readonly pod: Pod
  readonly explanation: PodExplanation
}

/** Groups pods by reason, ignoring amounts; most pods first. */
export function gathered(explained: readonly ExplainedPod[]): readonly PodGroup[] {
  const groups = Map.groupBy(explained, ({ explanation }) => reasonKey(explanation))
  return [...groups.values()]
    .flatMap((members): readonly PodGroup[] => {
      const [first] = members
      if (first === undefined) return []
      const workloads = Map.groupBy(members, ({ pod }) => workloadOf(pod))
      return [
        {
          code: first.explanation.code,
          pods: members.length,
          workloads: Array.from(workloads, ([name, { length }]) => ({ name, pods: length })).toSorted(
            (a, b) => b.pods - a.pods || (a.name < b.name ? -1 : 1),
          ),
          example: first.explanation,
        },
      ]
    })
    .toSorted((a, b) => b.pods - a.pods || (a.code < b.code ? -1 : 1))
}

/** Codes of the reasons per NodePool, with the field to change, without amounts. */
function reasonKey({ code, pending }: PodExplanation): string {
  const pools = (pending?.nodePools ?? []).map((each) => [each.nodePool, each.code, fieldIn(each.message)])
  return JSON.stringify([code, pools])
}

/** The path of the field that a message suggests to change. */
function fieldIn(message: string): string {
  return (message.match(/\bspec\.[\w.[\]]+/g) ?? []).join(' ')
}

/** Replaces a ReplicaSet by its Deployment, whose name it extends by a hash. */
function workloadOf(pod: Pod): string {
  const { namespace = '', name } = pod.metadata
  const owner = controllerOf(pod)
  if (owner === undefined) return `Pod ${namespace}/${name}`
  const hash = pod.metadata.labels?.['pod-template-hash']
  if (owner.kind === 'ReplicaSet' && hash !== undefined && owner.name.endsWith(`-${hash}`))
    return `Deployment ${namespace}/${owner.name.slice(0, -hash.length - 1)}`
  return `${owner.kind} ${namespace}/${owner.name}`
}
