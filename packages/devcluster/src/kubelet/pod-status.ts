import type { Container, ContainerStatus, Pod, PodCondition, ResourceRequirements } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

/** The state of a pod; all its containers have the same one. */
type ContainerState =
  | {
      readonly kind: 'waiting'
      readonly reason: 'ContainerCreating' | 'PodInitializing' | 'CrashLoopBackOff'
    }
  | { readonly kind: 'running'; readonly sinceMs: number }
  | {
      readonly kind: 'terminated'
      readonly exitCode: number
      readonly sinceMs: number
      readonly endMs: number
    }

/** The state of a pod, from which its status is written. */
export interface PodProgress {
  readonly startMs: number
  readonly hostIp: string | undefined
  readonly podIp: string | undefined
  readonly containers: ContainerState
  readonly restarts: number
  readonly lastEnd: Extract<ContainerState, { kind: 'terminated' }> | undefined
  /** Finished init containers; sidecars count when they run. */
  readonly initsDone: number
  /** Whether init container number `initsDone` is running. */
  readonly initRunning: boolean
  readonly terminal: boolean
  /** Allocated resources by container; set after the first in-place resize. */
  readonly allocated: ReadonlyMap<string, ResourceRequirements> | undefined
  /** Why a requested resize is pending. */
  readonly pendingResize: PendingResize | undefined
}

/** A resize that waits for room, or that the node can never fulfil. */
export interface PendingResize {
  readonly reason: 'Deferred' | 'Infeasible'
  readonly message: string
}

const pendingType = 'PodResizePending'

/** The status for `progress`; conditions of others are kept. */
export function podStatus(pod: Pod, progress: PodProgress, nowMs: number): object {
  const { containers, hostIp, podIp } = progress
  const running = containers.kind === 'running'
  return {
    phase: phaseOf(progress),
    conditions: conditions(pod, progress, rfc3339(nowMs)),
    startTime: rfc3339(progress.startMs),
    ...(hostIp === undefined ? {} : { hostIP: hostIp, hostIPs: [{ ip: hostIp }] }),
    ...(podIp === undefined ? {} : { podIP: podIp, podIPs: [{ ip: podIp }] }),
    containerStatuses: pod.spec.containers.map((container) => ({
      ...containerStatus(container, pod, stateOf(containers)),
      ...allocation(container, progress),
      ready: running,
      started: running,
      restartCount: progress.restarts,
      lastState: progress.lastEnd === undefined ? {} : stateOf(progress.lastEnd),
    })),
    ...initStatuses(pod, progress),
  }
}

/** The status of a pod that its node rejects. */
export function rejectedStatus(reason: string, message: string, nowMs: number): object {
  return { phase: 'Failed', reason, message: `Pod was rejected: ${message}`, startTime: rfc3339(nowMs) }
}

function phaseOf(progress: PodProgress): string {
  const { containers, terminal, restarts } = progress
  if (terminal && containers.kind === 'terminated') return containers.exitCode === 0 ? 'Succeeded' : 'Failed'
  if (containers.kind === 'running' || containers.kind === 'terminated') return 'Running'
  return restarts > 0 ? 'Running' : 'Pending'
}

function conditions(pod: Pod, progress: PodProgress, now: string): PodCondition[] {
  const { containers, terminal, podIp } = progress
  const initialized = progress.initsDone >= (pod.spec.initContainers?.length ?? 0)
  const ready = containers.kind === 'running'
  const completed = terminal && containers.kind === 'terminated' && containers.exitCode === 0
  const gate = closedGate(pod)
  const why = ready ? {} : completed ? { reason: 'PodCompleted' } : unready(pod)
  const own: PodCondition[] = [
    condition('PodReadyToStartContainers', podIp !== undefined && !terminal, {}),
    condition('Initialized', initialized, initialized ? {} : { reason: 'ContainersNotInitialized' }),
    condition('Ready', ready && gate === undefined, ready && gate !== undefined ? gate : why),
    condition('ContainersReady', ready, why),
    condition('PodScheduled', true, {}),
    ...(progress.pendingResize === undefined ? [] : [condition(pendingType, true, progress.pendingResize)]),
  ]
  const before = (pod.status?.conditions ?? []).filter(
    ({ type }) => type !== pendingType || progress.pendingResize !== undefined,
  )
  const dated = own.map((one): PodCondition => {
    const old = before.find((other) => other.type === one.type)
    const unchanged = old?.status === one.status && old.lastTransitionTime !== undefined
    return { ...one, lastTransitionTime: unchanged ? old.lastTransitionTime : now }
  })
  return [...before.filter((one) => !own.some((other) => other.type === one.type)), ...dated]
}

/** Readiness gates of a pod, which the shared Pod type omits. */
export function readinessGatesOf({ spec }: Pod): readonly { readonly conditionType: string }[] {
  const { readinessGates } = spec as { readonly readinessGates?: readonly { conditionType: string }[] }
  return readinessGates ?? []
}

/** The readiness gate that keeps the pod from being ready; others set its condition. */
function closedGate(pod: Pod): { readonly reason: string; readonly message: string } | undefined {
  const problems = readinessGatesOf(pod).flatMap(({ conditionType }) => {
    const status = pod.status?.conditions?.find(({ type }) => type === conditionType)?.status
    const name = `pod readiness gate "${conditionType}"`
    if (status === undefined) return [`corresponding condition of ${name} does not exist.`]
    return status === 'True' ? [] : [`the status of ${name} is not "True", but ${status}`]
  })
  if (problems.length === 0) return undefined
  return { reason: 'ReadinessGatesNotReady', message: problems.join(', ') }
}

/** The allocated resources of a container, after the first in-place resize of its pod. */
function allocation({ name }: Container, { allocated }: PodProgress): Partial<ContainerStatus> {
  const resources = allocated?.get(name)
  return resources === undefined ? {} : { resources, allocatedResources: resources.requests ?? {} }
}

function condition(type: string, holds: boolean, why: { readonly reason?: string }): PodCondition {
  return { type, status: holds ? 'True' : 'False', ...why }
}

function unready(pod: Pod): { readonly reason: string; readonly message: string } {
  const names = pod.spec.containers.map((one) => one.name).join(' ')
  return { reason: 'ContainersNotReady', message: `containers with unready status: [${names}]` }
}

function containerStatus(container: Container, pod: Pod, state: object): Record<string, unknown> {
  const image = container.image ?? ''
  const waiting = 'waiting' in state
  return {
    name: container.name,
    image,
    imageID: waiting ? '' : image,
    ...(waiting ? {} : { containerID: `containerd://${pod.metadata.uid ?? ''}-${container.name}` }),
    state,
  }
}

function stateOf(state: ContainerState): object {
  switch (state.kind) {
    case 'waiting':
      return { waiting: { reason: state.reason } }
    case 'running':
      return { running: { startedAt: rfc3339(state.sinceMs) } }
    case 'terminated':
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.exitCode === 0 ? 'Completed' : 'Error',
          startedAt: rfc3339(state.sinceMs),
          finishedAt: rfc3339(state.endMs),
        },
      }
  }
}

function initStatuses(pod: Pod, progress: PodProgress): object {
  const inits = pod.spec.initContainers ?? []
  if (inits.length === 0) return {}
  const { initsDone, initRunning, startMs, containers } = progress
  const over = containers.kind === 'terminated' && progress.terminal
  const initContainerStatuses = inits.map((container, position) => {
    const sidecar = container.restartPolicy === 'Always'
    const done = position < initsDone
    const runs = (done && sidecar && !over) || (position === initsDone && initRunning)
    const state: ContainerState = runs
      ? { kind: 'running', sinceMs: startMs }
      : done
        ? { kind: 'terminated', exitCode: 0, sinceMs: startMs, endMs: startMs }
        : { kind: 'waiting', reason: 'PodInitializing' }
    return {
      ...containerStatus(container, pod, stateOf(state)),
      ...(sidecar && allocation(container, progress)),
      ready: done,
      started: runs,
      restartCount: 0,
      lastState: {},
    }
  })
  return { initContainerStatuses }
}
