import { kinds, type Lease, type Node, type Pod } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { isReady, withCondition } from '../objects/pods.ts'
import { podNode } from './pods-by-node.ts'
import { nodeCondition, taintsFor, unknownConditions } from './node-taints.ts'

const component = 'node-controller'
const leaseNamespace = 'kube-node-lease'

interface Signs {
  renewTime: string | undefined
  heartbeat: string | undefined
  /** When a heartbeat last changed, by this process's clock, as node clocks may be wrong. */
  atMs: number
  uid: string | undefined
}

/** Sets silent nodes to Unknown, and taints nodes by their conditions. */
export function nodeLifecycle(context: ControllerContext): void {
  const { store, clock } = context
  const nodes = store.cache(kinds.node)
  const podsByNode = store.cache(kinds.pod).index(podNode)
  const signs = new Map<string, Signs>()
  const notified = new Map<string, string>()
  const queue = context.loop.queue('node-lifecycle', (name) =>
    reconcile(context, podsByNode, signs, notified, name),
  )
  const signsOf = (name: string): Signs => {
    const known = signs.get(name)
    if (known !== undefined) return known
    const fresh = { renewTime: undefined, heartbeat: undefined, atMs: clock.monotonic(), uid: undefined }
    signs.set(name, fresh)
    return fresh
  }
  nodes.onChange((now, before, latest) => {
    if (now === undefined) {
      const name = latest.metadata.name
      signs.delete(name)
      notified.delete(name)
      context.events.record(
        component,
        latest,
        'Normal',
        'RemovingNode',
        `Node ${name} event: Removing Node ${name} from Controller`,
      )
      return
    }
    const { name } = now.metadata
    const heartbeat = nodeCondition(now, 'Ready')?.lastHeartbeatTime
    const known = signsOf(name)
    if (known.heartbeat !== heartbeat || known.uid !== now.metadata.uid) known.atMs = clock.monotonic()
    known.heartbeat = heartbeat
    known.uid = now.metadata.uid
    if (before === undefined) {
      context.events.record(
        component,
        now,
        'Normal',
        'RegisteredNode',
        `Node ${name} event: Registered Node ${name} in Controller`,
      )
    }
    queue.add(name)
  })
  store.cache(kinds.lease).onChange((now: Lease | undefined) => {
    if (now?.metadata.namespace !== leaseNamespace) return
    const known = signs.get(now.metadata.name)
    if (known === undefined || known.renewTime === now.spec?.renewTime) return
    known.renewTime = now.spec?.renewTime
    known.atMs = clock.monotonic()
  })
}

function reconcile(
  context: ControllerContext,
  podsByNode: Index<Pod>,
  signs: ReadonlyMap<string, Signs>,
  notified: Map<string, string>,
  name: string,
): Outcome {
  const { store, clock, settings } = context
  const node = store.get(kinds.node, undefined, name)
  if (node === undefined) return undefined
  const ready = nodeCondition(node, 'Ready')
  const graceMs = ready === undefined ? settings.nodeStartupGraceMs : settings.nodeMonitorGraceMs
  const seenMs = signs.get(name)?.atMs ?? clock.monotonic()
  const leftMs = seenMs + graceMs - clock.monotonic()
  const now = rfc3339(clock.now())
  const silent = leftMs <= 0
  if (silent && ready?.status !== 'Unknown') {
    store.setStatus(kinds.node, node, { ...node.status, conditions: unknownConditions(node, now) })
  }
  taint(context, node, now)
  const status = nodeCondition(store.get(kinds.node, undefined, name) ?? node, 'Ready')?.status
  const last = notified.get(name)
  if (status !== undefined) notified.set(name, status)
  if (status !== undefined && status !== 'True' && last !== status) {
    if (last === 'True') {
      const message = `Node ${name} status is now: NodeNotReady`
      context.events.record(component, node, 'Normal', 'NodeNotReady', message)
    }
    for (const pod of podsByNode.of(name)) markNotReady(context, pod, now)
  }
  return silent ? undefined : { afterMs: leftMs }
}

function taint(context: ControllerContext, node: Node, now: string): void {
  context.store.modify(kinds.node, node, (latest) => {
    const taints = taintsFor(latest, now)
    const present = latest.spec?.taints ?? []
    return taints === present || taints.length + present.length === 0
      ? latest
      : { ...latest, spec: { ...latest.spec, taints } }
  })
}

/** Sets a pod of a silent node to not ready. */
function markNotReady(context: ControllerContext, pod: Pod, now: string): void {
  const { store } = context
  const latest = store.get(kinds.pod, pod.metadata.namespace, pod.metadata.name)
  if (latest === undefined || latest.metadata.uid !== pod.metadata.uid || !isReady(latest)) return
  const condition = { type: 'Ready', status: 'False', lastTransitionTime: now }
  store.setStatus(kinds.pod, latest, { ...latest.status, conditions: withCondition(latest, condition) })
  context.events.record(component, latest, 'Warning', 'NodeNotReady', 'Node is not ready')
  context.log.debug('pod marked not ready', { pod: keyOf(latest) })
}
