import { kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import { rfc3339, rfc3339Micro, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import { createTestApiServer } from '../apiserver/api-server.test-support.ts'
import { nodeOf } from './daemonset/daemon-pod.ts'
import type { ControllerSettings } from './context.ts'
import { isTerminating } from './objects/pods.ts'
import { startControllers } from './start-controllers.ts'

/** A cluster for tests: real controllers on virtual time, and pods that run as the test says. */
export interface World {
  readonly api: LocalApi
  readonly clock: VirtualClock
  /** How many milliseconds a pod takes to become Ready; negative: it never does. */
  readyAfterMs: (pod: Pod) => number
  /** How a pod ends after it ran; undefined: it runs on. */
  endsAs: (pod: Pod) => 'Succeeded' | 'Failed' | undefined
  /** Whether kubelets finish deletions. */
  kubeletsStop: boolean
  /** Nodes whose kubelet renews its lease. */
  readonly alive: Set<string>
  restart(): void
  stop(): void
  settle(ms?: number): Promise<void>
  events(reason: string): string[]
  pods(namespace?: string): Pod[]
}

/** Starts the controllers over an API server on a virtual clock, with a stand-in for scheduler and kubelets. */
export function startWorld(
  options: { readonly settings?: Partial<ControllerSettings>; readonly nodes?: readonly string[] } = {},
): World {
  const clock = new VirtualClock()
  const random = new SeededRandom(1)
  const server = createTestApiServer({ clock, random })
  const api = server.local
  const parts = { api, clock, random, logger: silentLogger, settings: options.settings ?? {} }
  let controllers = startControllers(parts)
  const world: World = {
    api,
    clock,
    readyAfterMs: () => 1000,
    endsAs: () => undefined,
    kubeletsStop: true,
    alive: new Set(),
    restart() {
      controllers.stop()
      controllers = startControllers(parts)
    },
    stop() {
      controllers.stop()
      server.stop()
    },
    settle: (ms = 5_000) => clock.advance(ms),
    events: (reason) =>
      api
        .list<KubeObject>(kinds.event)
        .map((event) => event as KubeObject & { reason: string; message: string })
        .filter((event) => event.reason === reason)
        .map((event) => event.message),
    pods: (namespace = 'default') => api.list(kinds.pod, { namespace }),
  }
  for (const name of ['default', 'kube-node-lease']) {
    if (api.get(kinds.namespace, undefined, name) !== undefined) continue
    api.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  for (const name of options.nodes ?? ['node-a']) addNode(world, name)
  renewLeases(world)
  runPods(world)
  return world
}

function renewLeases(world: World): void {
  const { api, clock } = world
  const namespace = 'kube-node-lease'
  for (const name of world.alive) {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } }
    const spec = { holderIdentity: name, renewTime: rfc3339Micro(clock.now()) }
    if (api.get(kinds.lease, namespace, name) === undefined) api.create(kinds.lease, { ...lease, spec })
    else api.update(kinds.lease, { ...lease, spec })
  }
  clock.after(10_000, () => renewLeases(world))
}

/** Stands in for scheduler and kubelets. */
function runPods(world: World): void {
  const { api, clock } = world
  const now = () => rfc3339(clock.now())
  const set = (pod: Pod, phase: string, ready: 'True' | 'False') => {
    const latest = api.get(kinds.pod, pod.metadata.namespace, pod.metadata.name)
    if (latest?.metadata.uid !== pod.metadata.uid || latest === undefined) return
    const condition = { type: 'Ready', status: ready, lastTransitionTime: now() }
    const status = { ...latest.status, phase, podIP: '10.0.0.1', startTime: now(), conditions: [condition] }
    api.updateStatus(kinds.pod, { ...latest, status } as Pod)
  }
  const started = new Set<string>()
  const ended = new Set<string>()
  const look = (pod: Pod) => {
    const { namespace = '', name, uid = '' } = pod.metadata
    if (isTerminating(pod)) {
      if (!world.kubeletsStop || ended.has(uid) || !pod.spec.nodeName) return
      ended.add(uid)
      clock.after(1000, () => {
        if (api.get(kinds.pod, namespace, name)?.metadata.uid !== uid) return
        api.delete(kinds.pod, namespace, name, { gracePeriodSeconds: 0 })
      })
      return
    }
    if (started.has(uid)) return
    started.add(uid)
    if (!pod.spec.nodeName) {
      if (api.get(kinds.pod, namespace, name)?.metadata.uid !== uid) return
      api.bind(namespace, name, nodeOf(pod) ?? 'node-a')
    }
    const delay = world.readyAfterMs(pod)
    if (delay < 0) return
    clock.after(delay, () => {
      set(pod, 'Running', 'True')
      const end = world.endsAs(pod)
      if (end !== undefined) clock.after(2000, () => set(pod, end, 'False'))
    })
  }
  api.subscribe(kinds.pod, { added: look, updated: look })
}

/** Registers a Ready node. */
export function addNode(
  world: World,
  name: string,
  more: Partial<Node> & { labels?: Record<string, string> } = {},
): Node {
  const { labels, ...rest } = more
  const node: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...(labels !== undefined && { labels }) },
    ...rest,
  }
  world.api.create(kinds.node, node)
  world.alive.add(name)
  return beat(world, name)
}

/** A heartbeat of a node's kubelet. */
export function beat(world: World, name: string, status: 'True' | 'False' = 'True'): Node {
  const node = world.api.get(kinds.node, undefined, name) as Node
  const at = rfc3339(world.clock.now())
  const condition = {
    type: 'Ready',
    status,
    reason: 'Kubelet',
    message: '',
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  }
  return world.api.updateStatus(kinds.node, { ...node, status: { ...node.status, conditions: [condition] } })
}

/** A pod template with label `app: APP`. */
export function template(
  app: string,
  image = 'app:1',
): { metadata: { labels: { app: string } }; spec: { containers: { name: string; image: string }[] } } {
  return { metadata: { labels: { app } }, spec: { containers: [{ name: 'main', image }] } }
}
