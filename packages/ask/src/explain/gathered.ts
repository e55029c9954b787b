/** Pods that wait for equal reasons, as one entry (ask.md 2). */
import { controllerOf, type Pod } from '@tenon/api'
import type { PodExplanation } from './pod.ts'

/** Pods with one reason. */
export interface PodGroup {
  readonly code: string
  readonly pods: number
  /** `Deployment shop/web`, most pods first; pods without a controller by their own names. */
  readonly workloads: readonly { readonly name: string; readonly pods: number }[]
  /** The explanation of the first of them. */
  readonly example: PodExplanation
}

/** An explanation and the pod it is about. */
export interface ExplainedPod {
  readonly pod: Pod
  readonly explanation: PodExplanation
}

/** Gathers pods by what forbids them to run, whatever the amounts; most pods first. */
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

/** Kinds of reasons, NodePool by NodePool, with the field that forbids it; no amounts. */
function reasonKey({ code, pending }: PodExplanation): string {
  const pools = (pending?.nodePools ?? []).map((each) => [each.nodePool, each.code, fieldIn(each.message)])
  return JSON.stringify([code, pools])
}

/** The path of a field that a message names as the one to change. */
function fieldIn(message: string): string {
  return (message.match(/\bspec\.[\w.[\]]+/g) ?? []).join(' ')
}

/** A ReplicaSet is taken for its Deployment: its name is that of the Deployment and a hash. */
function workloadOf(pod: Pod): string {
  const { namespace = '', name } = pod.metadata
  const owner = controllerOf(pod)
  if (owner === undefined) return `Pod ${namespace}/${name}`
  const hash = pod.metadata.labels?.['pod-template-hash']
  if (owner.kind === 'ReplicaSet' && hash !== undefined && owner.name.endsWith(`-${hash}`))
    return `Deployment ${namespace}/${owner.name.slice(0, -hash.length - 1)}`
  return `${owner.kind} ${namespace}/${owner.name}`
}
