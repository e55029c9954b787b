import { conditionOf, type LaunchScope, type NodeClass } from '@tenon/api'
import type { Change, EventRecorder } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import { scopeKey } from '@tenon/engine'
import type { Caches } from '../state/caches.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { LaunchGuard } from './launch-guard.ts'

/** Counts each refusal, and records an event on the NodePool of the launch. */
export function reportRefusals(
  guard: LaunchGuard,
  caches: Caches,
  events: EventRecorder,
  metrics: Metrics,
): void {
  guard.refused.add(({ scope, nodePool = '', because }) => {
    const { instanceType, zone, capacityType } = scope
    metrics.offeringRefusals.inc({ instance_type: instanceType, zone, capacity_type: capacityType })
    const object = caches.nodePools.get({ name: nodePool })
    if (object === undefined) return
    const untilMs = guard.health.untilMs(scope)
    events.record({
      object,
      type: 'Warning',
      reason: 'LaunchFailed',
      message: `${scopeText(scope)} could not be launched: ${because}${untilMs === undefined ? '' : `; not tried again before ${rfc3339(untilMs)}`}`,
      dedupe: [object.metadata.uid ?? nodePool, scopeKey(scope)],
    })
  })
}

function scopeText({ nodePool, nodeClass, instanceType, zone, capacityType }: LaunchScope): string {
  if (nodePool !== undefined) return `A node of NodePool ${nodePool}`
  if (nodeClass === undefined) return `${instanceType} in ${zone} as ${capacityType}`
  return instanceType === '' ? `A node of ${nodeClass}` : `${instanceType} with ${nodeClass}`
}

/** Forgets failures when a node class or a NodePool is changed, which has probably removed the cause. */
export function forgiveChanged(guard: LaunchGuard, { nodeClasses, nodePools }: Caches): void {
  nodePools.onChange((change) => {
    if (isChanged(change)) guard.changed({ nodePool: change.object.metadata.name })
  })
  for (const cache of nodeClasses)
    cache.onChange((change) => {
      if (isChanged(change) || isReadyAgain(change))
        guard.changed({ nodeClass: `${cache.type.kind}/${change.object.metadata.name}` })
    })
}

function isChanged(change: Change<NodeClass>): boolean {
  if (change.kind !== 'updated') return change.kind === 'deleted'
  return change.old.metadata.generation !== change.object.metadata.generation
}

function isReadyAgain(change: Change<NodeClass>): boolean {
  if (change.kind !== 'updated') return false
  const isReady = (nodeClass: NodeClass) => conditionOf(nodeClass, 'Ready')?.status === 'True'
  return isReady(change.object) && !isReady(change.old)
}
