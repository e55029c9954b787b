/** Groups pending pods with equal reasons and fixes (ask.md 2, page.md 1). */
import { controllerOf, type Pod } from '@tenon/api'
import type { ExplainedPod, PodExplanation } from './pod.ts'

/** Pods with the same reason and the same fixes. */
export interface PodGroup {
  readonly code: string
  readonly pods: number
  /** `Deployment shop/web`, most pods first; pods without a controller by their own names. */
  readonly workloads: readonly { readonly name: string; readonly pods: number }[]
  /** The explanation of the first pod. */
  readonly example: PodExplanation
}

/** Groups pods whose reason and fixes are the same, whatever they request; most pods first (page.md 1). */
export function gathered(explained: readonly ExplainedPod[]): readonly PodGroup[] {
  const groups = Map.groupBy(explained, reasonKey)
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

/** What is said of the pod, without its own amounts, and the instance types that would hold it. */
function reasonKey({ explanation: { case: what, code, summary, pending }, holders }: ExplainedPod): string {
  if (what === 'planned' || pending?.case === 'newNode' || pending?.case === 'node') return code
  const pools = (pending?.nodePools ?? []).map((each) => [
    each.nodePool,
    each.code,
    each.message.replaceAll(/requests: [^)]*/g, ''),
  ])
  return JSON.stringify([code, summary, pools, holders])
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
