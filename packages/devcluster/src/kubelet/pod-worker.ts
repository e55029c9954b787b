import { kinds, type Pod } from '@tenon/api'
import { type PodFacts, podFacts } from '@tenon/filters'
import {
  allocationsOf,
  type GivenContainers,
  givenContainers,
  isGiven,
  isTold,
  podWith,
} from './given-containers.ts'
import { attempt, type KubeletContext } from './kubelet-context.ts'
import {
  type PendingResize,
  type PodProgress,
  podStatus,
  readinessGatesOf,
  rejectedStatus,
} from './pod-status.ts'
import { draw } from './settings.ts'

/** What a worker needs from its kubelet. */
export interface WorkerHost {
  readonly hostIp: string | undefined
  /** An address for a pod; released with `releaseIp`. */
  takeIp(): string
  releaseIp(ip: string): void
  /** Calls `start` when the node may start one more pod; `startDone` ends its turn. */
  whenStartAllowed(start: () => void): void
  startDone(): void
  volumesReady(pod: Pod): boolean
  /** Whether the pod's claims are allocated, reserved for it, and their drivers run on the node. */
  devicesReady(pod: Pod): boolean
  /** The pod no longer uses resources of the node; may be called more than once. */
  ended(facts: PodFacts): void
}

const runSecondsAnnotation = 'tenon.sh/run-seconds'
const exitCodeAnnotation = 'tenon.sh/exit-code'
const firstCrashBackoffMs = 10_000
const longestCrashBackoffMs = 300_000
/** Exit code after SIGTERM. */
const terminated = 143
const volumeRetryMs = 500
/** Exit code after SIGKILL. */
const killed = 137

/**
 * Runs one pod on a node: starts it, ends or restarts it, and stops it when it is deleted. Every transition is one
 * status write. Timers end with the worker.
 */
export class PodWorker {
  #facts: PodFacts
  /** The containers with their allocated resources. */
  #given: GivenContainers
  readonly #context: KubeletContext
  readonly #host: WorkerHost
  #pod: Pod
  #progress: PodProgress
  #stage: 'new' | 'queued' | 'starting' | 'running' | 'stopping' | 'ended' = 'new'
  #cancel: (() => void) | undefined
  #cancelDeadline: (() => void) | undefined
  /** When a stopping pod ends. */
  #stopAt = Number.POSITIVE_INFINITY

  constructor(context: KubeletContext, host: WorkerHost, pod: Pod) {
    this.#context = context
    this.#host = host
    this.#pod = pod
    this.#given = givenContainers(pod)
    this.#facts = podFacts(podWith(pod, this.#given), context.table)
    this.#progress = {
      startMs: context.clock.now(),
      hostIp: host.hostIp,
      podIp: undefined,
      containers: { kind: 'waiting', reason: 'ContainerCreating' },
      restarts: 0,
      lastEnd: undefined,
      initsDone: 0,
      initRunning: false,
      terminal: false,
      allocated: isTold(pod) ? allocationsOf(this.#given) : undefined,
      pendingResize: undefined,
    }
  }

  /** The pod with its allocated resources. */
  get facts(): PodFacts {
    return this.#facts
  }

  /** The pod with its requested resources; undefined if they are equal to the allocated ones. */
  wanted(): PodFacts | undefined {
    const { spec } = this.#pod
    if (this.#stage === 'stopping' || this.#stage === 'ended' || isGiven(this.#given, spec)) return undefined
    return podFacts(podWith(this.#pod, spec), this.#context.table)
  }

  /** Allocates the resources of {@link wanted}. */
  resize(facts: PodFacts): void {
    this.#facts = facts
    this.#given = this.#pod.spec
    this.#set({ allocated: allocationsOf(this.#given), pendingResize: undefined })
    this.#report()
  }

  /** The resize is pending or infeasible; `undefined`: none is requested any more. */
  keep(pendingResize: PendingResize | undefined): void {
    const before = this.#progress.pendingResize
    if (before?.reason === pendingResize?.reason && before?.message === pendingResize?.message) return
    this.#set({ allocated: allocationsOf(this.#given), pendingResize })
    this.#report()
  }

  /** Takes over the pod: starts a new one, continues a running one, stops a deleted one. */
  begin(): void {
    this.#armDeadline()
    const phase = this.#pod.status?.phase
    if (phase === 'Succeeded' || phase === 'Failed') this.#leave()
    else if (phase === 'Running') this.#adopt()
    if (this.#pod.metadata.deletionTimestamp !== undefined) {
      this.#stopPod()
    } else if (this.#stage === 'new') {
      this.#stage = 'queued'
      // Deferred, so that many pods bound together are started in slices.
      this.#later(0, () => {
        this.#report()
        this.#host.whenStartAllowed(() => this.#start())
      })
    }
  }

  /** The node rejects the pod: it fails. */
  reject(reason: string, message: string): void {
    this.#stage = 'ended'
    this.#write(rejectedStatus(reason, message, this.#context.clock.now()))
  }

  update(pod: Pod): void {
    const before = this.#pod
    this.#pod = pod
    if (pod.metadata.deletionTimestamp !== undefined) {
      this.#stopPod()
      return
    }
    if (deadlineOf(pod) !== deadlineOf(before)) this.#armDeadline()
    if (this.#stage === 'running' && readinessGatesOf(pod).length > 0) this.#report()
  }

  /** Writes again that the pod is ready, after it was marked not ready with its node. */
  reassert(): void {
    const conditions = this.#pod.status?.conditions ?? []
    if (this.#stage !== 'running' || this.#pod.status?.phase !== 'Running') return
    if (conditions.some(({ type, status }) => type === 'Ready' && status === 'False')) this.#report()
  }

  /** Ends without a status write, as the pod or the instance is gone. */
  abandon(): void {
    this.#end()
  }

  #adopt(): void {
    this.#stage = 'running'
    const started = this.#pod.status?.startTime
    const startMs = started === undefined ? this.#progress.startMs : Date.parse(started)
    const podIp = this.#pod.status?.podIP
    const inits = this.#pod.spec.initContainers?.length ?? 0
    this.#set({ startMs, podIp, containers: { kind: 'running', sinceMs: startMs }, initsDone: inits })
    this.#armRunTime()
  }

  #start(): void {
    if (this.#stage !== 'queued') {
      this.#host.startDone()
      return
    }
    this.#stage = 'starting'
    this.#later(draw(this.#context.random, this.#context.settings.pullDelay), () => this.#mount())
  }

  #mount(): void {
    if (!this.#host.volumesReady(this.#pod) || !this.#host.devicesReady(this.#pod)) {
      this.#later(volumeRetryMs, () => this.#mount())
      return
    }
    const podIp = this.#pod.spec.hostNetwork ? this.#host.hostIp : this.#host.takeIp()
    this.#set({ podIp })
    this.#initialise()
  }

  /** Init containers run one after the other; sidecars only have to start. */
  #initialise(): void {
    const inits = this.#pod.spec.initContainers ?? []
    const { random, settings } = this.#context
    const next = inits[this.#progress.initsDone]
    if (next === undefined) {
      this.#later(draw(random, settings.startDelay), () => this.#run())
      return
    }
    this.#set({ initRunning: true, containers: { kind: 'waiting', reason: 'PodInitializing' } })
    this.#report()
    const delay = next.restartPolicy === 'Always' ? settings.startDelay : settings.initRunTime
    this.#later(draw(random, delay), () => {
      this.#set({ initsDone: this.#progress.initsDone + 1, initRunning: false })
      this.#initialise()
    })
  }

  #run(): void {
    if (this.#stage === 'starting') this.#host.startDone()
    this.#stage = 'running'
    this.#set({ containers: { kind: 'running', sinceMs: this.#context.clock.now() } })
    this.#report()
    this.#armRunTime()
  }

  /** Pods with a run time, and pods of Jobs, end by themselves. */
  #armRunTime(): void {
    const seconds = this.#runSeconds()
    const { containers } = this.#progress
    if (seconds === undefined || containers.kind !== 'running') return
    const ranMs = this.#context.clock.now() - containers.sinceMs
    this.#later(seconds * 1000 - ranMs, () => this.#finish(this.#exitCode()))
  }

  #runSeconds(): number | undefined {
    const said = Number(this.#pod.metadata.annotations?.[runSecondsAnnotation] ?? Number.NaN)
    if (Number.isFinite(said)) return said
    const ofJob = this.#pod.metadata.ownerReferences?.some((owner) => owner.kind === 'Job')
    return ofJob ? this.#context.settings.jobRunSeconds : undefined
  }

  #exitCode(): number {
    const code = Number(this.#pod.metadata.annotations?.[exitCodeAnnotation] ?? 0)
    return Number.isInteger(code) ? code : 1
  }

  #finish(exitCode: number): void {
    const policy = this.#pod.spec.restartPolicy ?? 'Always'
    const restarts = policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0)
    const { containers } = this.#progress
    const endMs = this.#context.clock.now()
    const sinceMs = containers.kind === 'running' ? containers.sinceMs : endMs
    const end = { kind: 'terminated', exitCode, sinceMs, endMs } as const
    if (!restarts) {
      this.#set({ containers: end, terminal: true })
      this.#report()
      this.#end()
      return
    }
    const done = this.#progress.restarts
    const backoffMs = done === 0 ? 0 : Math.min(longestCrashBackoffMs, firstCrashBackoffMs * 2 ** (done - 1))
    this.#set({ restarts: done + 1, lastEnd: end })
    if (backoffMs === 0) {
      this.#run()
      return
    }
    this.#set({ containers: { kind: 'waiting', reason: 'CrashLoopBackOff' } })
    this.#report()
    this.#later(backoffMs, () => this.#run())
  }

  /** `activeDeadlineSeconds` counts from the admission of the pod by the node. */
  #armDeadline(): void {
    this.#cancelDeadline?.()
    const deadline = deadlineOf(this.#pod)
    if (deadline === undefined || this.#stage === 'ended') return
    const started = Date.parse(this.#pod.status?.startTime ?? '')
    const startMs = Number.isNaN(started) ? this.#progress.startMs : started
    const leftMs = startMs + deadline * 1000 - this.#context.clock.now()
    this.#cancelDeadline = this.#context.timers.after(Math.max(0, leftMs), () => this.#expire())
  }

  #expire(): void {
    const current = this.#current()
    if (current === undefined || this.#stage === 'stopping' || this.#stage === 'ended') return
    const { containers } = this.#progress
    const endMs = this.#context.clock.now()
    const sinceMs = containers.kind === 'running' ? containers.sinceMs : endMs
    this.#set({ containers: { kind: 'terminated', exitCode: killed, sinceMs, endMs }, terminal: true })
    this.#write({
      ...podStatus(current, this.#progress, endMs),
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    })
    this.#end()
  }

  /** Stops a pod that never ran at once; a running one takes its stop delay, limited by its grace period. */
  #stopPod(): void {
    const { clock, random, settings } = this.#context
    const wasRunning = this.#progress.containers.kind !== 'waiting'
    const graceMs = (this.#pod.metadata.deletionGracePeriodSeconds ?? 30) * 1000
    const ended = this.#stage === 'ended'
    const delay = ended || !wasRunning ? 0 : Math.min(draw(random, settings.stopDelay), graceMs)
    const stopAt = clock.monotonic() + delay
    if (stopAt >= this.#stopAt) return
    this.#stopAt = stopAt
    if (this.#stage === 'starting') this.#host.startDone()
    if (!ended) this.#stage = 'stopping'
    this.#later(delay, () => this.#stopped(wasRunning && !ended))
  }

  #stopped(hadRun: boolean): void {
    if (hadRun) {
      const { containers } = this.#progress
      const endMs = this.#context.clock.now()
      const sinceMs = containers.kind === 'waiting' ? endMs : containers.sinceMs
      // A pod that would have ended by itself was interrupted.
      const exitCode = this.#runSeconds() === undefined ? 0 : terminated
      this.#set({ containers: { kind: 'terminated', exitCode, sinceMs, endMs }, terminal: true })
      this.#report()
    }
    this.#end()
    const { metadata } = this.#pod
    attempt(this.#context.logger, 'pod could not be removed', () => {
      const precondition = metadata.uid === undefined ? {} : { preconditionUid: metadata.uid }
      this.#context.api.delete(kinds.pod, metadata.namespace, metadata.name, {
        gracePeriodSeconds: 0,
        ...precondition,
      })
    })
  }

  #end(): void {
    this.#cancel?.()
    if (this.#stage === 'starting') this.#host.startDone()
    this.#leave()
    const { podIp } = this.#progress
    if (podIp !== undefined && podIp !== this.#host.hostIp) this.#host.releaseIp(podIp)
  }

  #leave(): void {
    this.#cancelDeadline?.()
    this.#stage = 'ended'
    this.#host.ended(this.#facts)
  }

  #set(change: Partial<PodProgress>): void {
    this.#progress = { ...this.#progress, ...change }
  }

  /** A worker has one timer, as it waits for one thing at a time. */
  #later(ms: number, callback: () => void): void {
    this.#cancel?.()
    this.#cancel = this.#context.timers.after(ms, callback)
  }

  #report(): void {
    const current = this.#current()
    if (current !== undefined) this.#write(podStatus(current, this.#progress, this.#context.clock.now()))
  }

  #write(status: object): void {
    if (this.#current() === undefined) return
    const { namespace, name } = this.#pod.metadata
    attempt(this.#context.logger, 'pod status could not be written', () =>
      this.#context.api.patch(kinds.pod, namespace, name, { status }, 'status'),
    )
  }

  /** The current pod; undefined if it is gone or replaced. */
  #current(): Pod | undefined {
    const { namespace, name, uid } = this.#pod.metadata
    const pod = this.#context.api.get(kinds.pod, namespace, name)
    return pod?.metadata.uid === uid ? pod : undefined
  }
}

/** The pod's `activeDeadlineSeconds`. */
function deadlineOf({ spec }: Pod): number | undefined {
  return (spec as { readonly activeDeadlineSeconds?: number }).activeDeadlineSeconds
}
