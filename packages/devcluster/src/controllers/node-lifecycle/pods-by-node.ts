import type { Pod } from '@tenon/api'

/** Index value: the node a pod is bound to. */
export function podNode(pod: Pod): readonly string[] {
  const { nodeName } = pod.spec
  return nodeName === undefined || nodeName === '' ? [] : [nodeName]
}
