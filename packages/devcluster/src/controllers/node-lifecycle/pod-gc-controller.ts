import { kinds, type Node, type Pod } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { ControllerContext } from '../context.ts'
import { keyOf } from '../loop/object-cache.ts'
import type { Steps } from '../loop/reconcile-loop.ts'
import { disruptionTarget, isFinished, isTerminating, withCondition } from '../objects/pods.ts'
import { nodeCondition, outOfServiceTaint } from './node-taints.ts'
import { podNode } from './pods-by-node.ts'

const writesPerStep = 16
const thresholdDelayMs = 20_000

/** Deletes pods that no kubelet will ever delete, and finished pods above the threshold. */
export function podGarbageCollection(context: ControllerContext): void {
  const { store, settings, clock } = context
  const nodes = store.cache(kinds.node)
  const pods = store.cache(kinds.pod)
  const podsByNode = pods.index(podNode)
  const finished = pods.index(finishedPods)
  const missingSince = new Map<string, number>()
  const orphans = context.loop.queue('pod-garbage-collector', function* (name): Steps {
    const node = store.get(kinds.node, undefined, name)
    if (node !== undefined) {
      missingSince.delete(name)
      if (isOutOfService(node)) yield* removeAll(context, [...podsByNode.of(name)].filter(isTerminating))
      return undefined
    }
    if (podsByNode.count(name) === 0) {
      missingSince.delete(name)
      return undefined
    }
    const since = missingSince.get(name) ?? clock.monotonic()
    missingSince.set(name, since)
    const leftMs = since + settings.podGcQuarantineMs - clock.monotonic()
    if (leftMs > 0) return { afterMs: leftMs }
    missingSince.delete(name)
    yield* removeAll(context, [...podsByNode.of(name)], 'PodGC: node no longer exists')
    return undefined
  })
  const threshold = context.loop.queue('pod-garbage-collector-threshold', function* (): Steps {
    const excess = finished.count('finished') - settings.terminatedPodThreshold
    if (excess <= 0) return undefined
    const oldest = [...finished.of('finished')].sort(oldestFirst).slice(0, excess)
    yield* removeAll(context, oldest)
    return undefined
  })
  nodes.onChange((now, _before, latest) => {
    if (now === undefined || isOutOfService(now)) orphans.add(latest.metadata.name)
  })
  pods.onChange((now) => {
    if (now === undefined) return
    const [name] = podNode(now)
    if (name !== undefined) {
      const node = nodes.get(name)
      if (node === undefined || (isTerminating(now) && isOutOfService(node))) orphans.add(name)
    }
    if (finished.count('finished') > settings.terminatedPodThreshold)
      threshold.addAfter('all', thresholdDelayMs)
  })
}

function finishedPods(pod: Pod): readonly string[] {
  return isFinished(pod) && !isTerminating(pod) ? ['finished'] : []
}

function isOutOfService(node: Node): boolean {
  const tainted = node.spec?.taints?.some((taint) => taint.key === outOfServiceTaint) === true
  return tainted && nodeCondition(node, 'Ready')?.status !== 'True'
}

function* removeAll(
  context: ControllerContext,
  pods: readonly Pod[],
  why?: string,
): Generator<undefined, void, undefined> {
  for (const [index, pod] of pods.entries()) {
    remove(context, pod, why)
    if (index % writesPerStep === writesPerStep - 1) yield
  }
}

function remove(context: ControllerContext, pod: Pod, why: string | undefined): void {
  const { store, clock } = context
  const latest = store.get(kinds.pod, pod.metadata.namespace, pod.metadata.name)
  if (latest === undefined || latest.metadata.uid !== pod.metadata.uid) return
  if (!isFinished(latest)) {
    const conditions =
      why === undefined
        ? latest.status?.conditions
        : withCondition(latest, disruptionTarget('DeletionByPodGC', why, rfc3339(clock.now())))
    store.setStatus(kinds.pod, latest, {
      ...latest.status,
      phase: 'Failed',
      ...(conditions !== undefined && { conditions }),
    })
  }
  context.log.info('pod garbage collected', { pod: keyOf(pod), node: pod.spec.nodeName })
  store.delete(kinds.pod, latest, { gracePeriodSeconds: 0 })
}

function oldestFirst(a: Pod, b: Pod): number {
  const left = a.metadata.creationTimestamp ?? ''
  const right = b.metadata.creationTimestamp ?? ''
  if (left !== right) return left < right ? -1 : 1
  return keyOf(a) < keyOf(b) ? -1 : 1
}
