import { kinds, type Node, type Pod, type Taint, tolerates } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { ControllerContext } from '../context.ts'
import { keyOf, type ObjectCache, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { disruptionTarget, isFinished, isTerminating, withCondition } from '../objects/pods.ts'
import { podNode } from './pods-by-node.ts'

const component = 'taint-eviction-controller'

/** Deletes pods that do not tolerate the NoExecute taints of their node. */
export function taintEviction(context: ControllerContext): void {
  const { store } = context
  const nodes = store.cache(kinds.node)
  const pods = store.cache(kinds.pod)
  const podsByNode = pods.index(podNode)
  const waiting = new Set<string>()
  const queue = context.loop.queue('taint-eviction', (key) => reconcile(context, nodes, waiting, key))
  nodes.onChange((now, before, latest) => {
    if (now?.spec?.taints === before?.spec?.taints) return
    if (noExecuteTaints(now).length === 0 && noExecuteTaints(before).length === 0) return
    for (const pod of podsByNode.of(latest.metadata.name)) queue.add(keyOf(pod))
  })
  pods.onChange((now, before, latest) => {
    if (now === undefined) {
      waiting.delete(keyOf(latest))
      return
    }
    const bound = now.spec.nodeName !== before?.spec.nodeName
    if (!bound && now.spec.tolerations === before?.spec.tolerations) return
    if (noExecuteTaints(nodes.get(now.spec.nodeName ?? '')).length > 0) queue.add(keyOf(now))
  })
}

function noExecuteTaints(node: Node | undefined): Taint[] {
  return (node?.spec?.taints ?? []).filter((taint) => taint.effect === 'NoExecute')
}

function reconcile(
  context: ControllerContext,
  nodes: ObjectCache<Node>,
  waiting: Set<string>,
  key: string,
): Outcome {
  const { namespace, name } = splitKey(key)
  const pod = context.store.get(kinds.pod, namespace, name)
  if (pod === undefined || isTerminating(pod) || isFinished(pod)) {
    waiting.delete(key)
    return undefined
  }
  const leftMs = evictionInMs(pod, noExecuteTaints(nodes.get(pod.spec.nodeName ?? '')), context.clock.now())
  if (leftMs === undefined) {
    if (waiting.delete(key)) tell(context, pod, `Cancelling deletion of Pod ${key}`)
    return undefined
  }
  if (leftMs > 0) {
    waiting.add(key)
    return { afterMs: leftMs }
  }
  waiting.delete(key)
  evict(context, pod)
  return undefined
}

/**
 * When the pod must be deleted: 0 = now, `undefined` = never. If several tolerations match a taint, the shortest time
 * applies, counted from when the taint was added.
 */
function evictionInMs(pod: Pod, taints: readonly Taint[], nowMs: number): number | undefined {
  let left = Number.POSITIVE_INFINITY
  for (const taint of taints) {
    const matching = (pod.spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint))
    if (matching.length === 0) return 0
    const seconds = Math.min(
      ...matching.map((toleration) => toleration.tolerationSeconds ?? Number.POSITIVE_INFINITY),
    )
    const added = Date.parse(taint.timeAdded ?? '')
    // For a pod bound after the taint, the time starts at the binding.
    const started = Math.max(Number.isNaN(added) ? 0 : added, boundAt(pod))
    left = Math.min(
      left,
      Math.max(0, (started === 0 ? nowMs : started) + Math.max(0, seconds) * 1000 - nowMs),
    )
  }
  return Number.isFinite(left) ? left : undefined
}

function boundAt(pod: Pod): number {
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled')
  const at = scheduled?.status === 'True' ? scheduled.lastTransitionTime : undefined
  return Date.parse(at ?? pod.metadata.creationTimestamp ?? '') || 0
}

function evict(context: ControllerContext, pod: Pod): void {
  tell(context, pod, `Marking for deletion Pod ${keyOf(pod)}`)
  const now = rfc3339(context.clock.now())
  const message = 'Taint manager: deleting due to NoExecute taint'
  const condition = disruptionTarget('DeletionByTaintManager', message, now)
  context.store.setStatus(kinds.pod, pod, { ...pod.status, conditions: withCondition(pod, condition) })
  context.store.delete(kinds.pod, pod)
}

function tell(context: ControllerContext, pod: Pod, message: string): void {
  context.events.record(component, pod, 'Normal', 'TaintManagerEviction', message)
}
