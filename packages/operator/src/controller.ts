/** Controllers and loops as values, and how they run (operations.md 7). */
import { autoscalingKinds, karpenterKinds, kinds, type KubeObject, type ResourceType } from '@tenon/api'
import {
  type Cache,
  type Change,
  type Controller,
  type ControllerDependencies,
  createController,
  createSingleton,
  type ReconcileResult,
  type WorkGate,
} from '@tenon/kube'
import { scaledConcurrency } from './settings.ts'
import type { LogFields } from '@tenon/runtime'

/** Asks for a reconcile of a key, now or after a delay in milliseconds. */
export type Enqueue = (key: string, delayMs?: number) => void

/** A controller: which keys it works on, when, and what it does with one. */
export interface ControllerSpec {
  /** As in metrics and logs, for example `nodeclaim.lifecycle`. */
  readonly name: string
  /** Workers on one core, and on sixty; in between they grow with the CPU request. */
  readonly concurrency: { readonly least: number; readonly most: number }
  /** Delays before a key that failed comes back, in milliseconds. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number }
  /** Keys per second that come back after a failure, on one core; unlimited when absent. */
  readonly perSecond?: number
  /** Subscribes to everything that asks for a reconcile. Called once, before anything runs. */
  watch(enqueue: Enqueue): void
  /** Works on one key; the same key never runs twice at once. */
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
}

/** Work that belongs to no object: runs when the last run asks for it. */
export interface SingletonSpec {
  readonly name: string
  run(signal: AbortSignal): Promise<ReconcileResult>
}

/** Work with a rhythm of its own, until `signal` aborts. */
export interface LoopSpec {
  readonly name: string
  loop(signal: AbortSignal): Promise<void>
}

export type RunnableSpec = ControllerSpec | SingletonSpec | LoopSpec

/** A controller or loop that can be started once and stopped once. */
export interface Runnable {
  readonly name: string
  start(): void
  stop(): Promise<void>
}

const defaultBackoff = { baseMs: 5, capMs: 1_000_000 }

/**
 * Builds what runs each spec and subscribes the controllers, in the order of the list. Nothing runs before `start`.
 * @param cpuRequestsMillis what the process requests, in thousandths of a core.
 * @param gateOf closed while the controller of a spec must not work.
 */
export function runnables(
  specs: readonly RunnableSpec[],
  cpuRequestsMillis: number,
  shared: ControllerDependencies,
  gateOf: (spec: RunnableSpec) => WorkGate | undefined = () => undefined,
): readonly Runnable[] {
  return specs.map((spec) => {
    if ('loop' in spec) return loopOf(spec)
    const gate = gateOf(spec)
    const deps = { ...shared, ...(gate && { gate }) }
    if ('run' in spec) return createSingleton({ name: spec.name, run: (signal) => spec.run(signal), ...deps })
    const controller = queueOf(spec, cpuRequestsMillis, deps)
    spec.watch((key, delayMs) => {
      controller.enqueue(key, delayMs)
    })
    return controller
  })
}

function queueOf(spec: ControllerSpec, cpuRequestsMillis: number, deps: ControllerDependencies): Controller {
  const { name, perSecond, backoff = defaultBackoff } = spec
  const { least, most } = spec.concurrency
  const concurrency = scaledConcurrency(least, most, cpuRequestsMillis)
  const describe = describedBy(name)
  const qps = perSecond === undefined ? undefined : Math.ceil((concurrency * perSecond) / least)
  return createController(
    {
      name,
      concurrency,
      backoff,
      ...(qps !== undefined && { rate: { perSecond: qps, burst: 10 * qps } }),
      ...(describe !== undefined && { describe }),
      reconcile: (key, signal) => spec.reconcile(key, signal),
    },
    deps,
  )
}

function loopOf(spec: LoopSpec): Runnable {
  const { name } = spec
  const stopping = new AbortController()
  let running: Promise<void> = Promise.resolve()
  return {
    name,
    start() {
      running = spec.loop(stopping.signal)
    },
    async stop() {
      stopping.abort(new Error(`${name} is stopping`))
      await running.catch(() => undefined)
    },
  }
}

/** Passes the name of every object that changes on to `enqueue`, of those changes that `matters` admits. */
export function enqueueChanged<T extends KubeObject>(
  cache: Pick<Cache<T>, 'onChange'>,
  enqueue: Enqueue,
  matters: (change: Change<T>) => boolean = () => true,
): void {
  cache.onChange((change) => {
    if (matters(change)) enqueue(change.object.metadata.name)
  })
}

/** Controllers whose keys are names, by how their own names begin. */
const kindsByName: readonly (readonly [begin: string, type: ResourceType])[] = [
  ['nodeclaim.', karpenterKinds.nodeClaim],
  ['state.nodeclaim', karpenterKinds.nodeClaim],
  ['operatorpkg.nodeclaim.', karpenterKinds.nodeClaim],
  ['nodepool.', karpenterKinds.nodePool],
  ['state.nodepool', karpenterKinds.nodePool],
  ['static.', karpenterKinds.nodePool],
  ['operatorpkg.nodepool.', karpenterKinds.nodePool],
  ['node.', kinds.node],
  ['operatorpkg.node.', kinds.node],
]

/** Undefined for controllers whose keys are no names. */
function describedBy(controller: string): ((name: string) => LogFields) | undefined {
  if (controller === 'state.nodeclaimgc') return undefined
  if (controller === 'capacitybuffer') return described(autoscalingKinds.capacityBuffer)
  if (controller === 'provisioningrequest') return described(autoscalingKinds.provisioningRequest)
  const type = kindsByName.find(([begin]) => controller.startsWith(begin))?.[1]
  if (type === undefined) return undefined
  return (name) => ({
    controllerGroup: type.group,
    controllerKind: type.kind,
    [type.kind]: { name },
    namespace: '',
    name,
  })
}

function described({ group, kind }: ResourceType): (key: string) => LogFields {
  return (key) => {
    const [namespace = '', name = ''] = key.split('/')
    return { controllerGroup: group, controllerKind: kind, [kind]: { name, namespace }, namespace, name }
  }
}
