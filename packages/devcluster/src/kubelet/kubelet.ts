import { kinds, type Node, type Pod } from '@tenon/api'
import { rfc3339Micro } from '@tenon/runtime'
import type { KubeletHandle, KubeletSpec } from '../contract.ts'
import { NodeEntry, type PodFacts } from '@tenon/filters'
import { NodeDevices } from './node-devices.ts'
import { type Admission, admitPod } from './admission.ts'
import { attempt, type KubeletContext } from './kubelet-context.ts'
import {
  adoptionPatch,
  leaseNamespace,
  newCsiNode,
  newLease,
  newNode,
  nodeStatus,
  ownerOf,
  statusDiffers,
} from './node-object.ts'
import { PodWorker, type WorkerHost } from './pod-worker.ts'
import { Resizes } from './resizes.ts'
import { draw } from './settings.ts'

/** One node: its Node object, its heartbeats and the pods bound to it. */
export class Kubelet implements KubeletHandle {
  readonly nodeName: string
  readonly spec: KubeletSpec
  readonly #context: KubeletContext
  readonly #workers = new Map<string, PodWorker>()
  /** What the admitted pods use together. */
  readonly #taken: NodeEntry
  readonly #resizes: Resizes
  readonly #host: WorkerHost
  readonly #devices: NodeDevices
  readonly #onStop: () => void
  readonly #waitingStarts: (() => void)[] = []
  #starting = 0
  #ready = false
  #reportedAt = Number.NEGATIVE_INFINITY
  #registered = false
  #silentUntil = Number.NEGATIVE_INFINITY
  #stopped = false

  /** @param subnet `a.b.c`, the first three parts of this node's pod addresses. */
  constructor(
    context: KubeletContext,
    spec: KubeletSpec,
    subnet: string,
    volumesReady: (pod: Pod) => boolean,
    onStop: () => void,
  ) {
    this.nodeName = spec.nodeName
    this.#context = context
    this.spec = spec
    this.#onStop = onStop
    this.#taken = new NodeEntry(spec.nodeName)
    this.#resizes = new Resizes(this.#taken, context.table)
    const addresses = new PodAddresses(subnet)
    this.#devices = new NodeDevices(context, spec)
    this.#host = {
      hostIp: spec.addresses.find((one) => one.type === 'InternalIP')?.address,
      takeIp: () => addresses.take(),
      releaseIp: (ip) => addresses.release(ip),
      whenStartAllowed: (start) => this.#whenStartAllowed(start),
      startDone: () => this.#startDone(),
      volumesReady,
      devicesReady: (pod) => this.#devices.isReadyFor(pod),
      ended: (facts) => {
        if (!this.#taken.pods.has(facts.uid)) return
        this.#taken.remove(facts)
        if (!this.#stopped) this.#resizes.retry()
      },
    }
  }

  /** Registers the Node and starts its heartbeats. */
  begin(): void {
    const { clock, random, settings, timers } = this.#context
    const isResumed = this.#wasReadyBefore()
    this.#ready = this.spec.wasReady === true || isResumed
    this.#register()
    // From now on the heartbeat is of this run.
    if (isResumed) this.#reportStatus(clock.now())
    if (this.#ready) this.#devices.begin(0)
    timers.after(draw(random, settings.readyDelay), () => {
      if (this.#stopped || this.#ready || this.spec.neverReady === true) return
      this.#ready = true
      this.#reportStatus(clock.now())
      this.#devices.begin()
    })
    // Jitter, so that nodes that started together do not send heartbeats together.
    timers.after(draw(random, [settings.leaseRenewMs / 2, settings.leaseRenewMs]), () => this.#beat())
  }

  /** Whether an earlier run of the cluster has reported the node as Ready: to its pods the run was not interrupted. */
  #wasReadyBefore(): boolean {
    const { startedAt } = this.#context
    const node = this.#node()
    if (node === undefined || this.spec.neverReady === true) return false
    if (node.spec?.providerID !== this.spec.providerId) return false
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
    return ready?.status === 'True' && Date.parse(ready.lastHeartbeatTime ?? '') < startedAt
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#devices.stop()
    for (const worker of this.#workers.values()) worker.abandon()
    this.#onStop()
  }

  /** Sends no heartbeats for this time; pods continue. */
  silence(ms: number): void {
    this.#silentUntil = this.#context.clock.monotonic() + ms
  }

  /** Call it when a pod bound to this node is added or changed. */
  observePod(pod: Pod): void {
    const uid = pod.metadata.uid ?? ''
    const known = this.#workers.get(uid)
    if (known !== undefined) {
      known.update(pod)
      this.#observeResize(known)
      return
    }
    const worker = new PodWorker(this.#context, this.#host, pod)
    const fresh =
      (pod.status?.phase ?? 'Pending') === 'Pending' && pod.metadata.deletionTimestamp === undefined
    const node = fresh ? this.#node() : undefined
    this.#workers.set(uid, worker)
    const admission = node === undefined ? undefined : this.#admit(worker.facts, node)
    if (admission?.kind === 'rejected') {
      worker.reject(admission.reason, admission.message)
      return
    }
    this.#taken.add(worker.facts)
    worker.begin()
    // A pending resize of an earlier run waits behind those of the other pods.
    if (worker.wanted() !== undefined) this.#context.timers.after(0, () => this.#observeResize(worker))
  }

  #admit(facts: PodFacts, node: Node): Admission {
    this.#see(node)
    return admitPod(facts, this.#taken, this.#context.table)
  }

  #observeResize(worker: PodWorker): void {
    const node = this.#stopped ? undefined : this.#node()
    if (node === undefined) return
    this.#see(node)
    this.#resizes.observe(worker)
  }

  #see(node: Node): void {
    if (this.#taken.node !== node) this.#taken.set(node, this.#context.table)
  }

  forgetPod(uid: string): void {
    this.#workers.get(uid)?.abandon()
    this.#workers.delete(uid)
  }

  #node(): Node | undefined {
    return this.#context.api.get(kinds.node, undefined, this.nodeName)
  }

  #register(): void {
    const { api, clock, logger, settings } = this.#context
    const now = clock.now()
    const existing = this.#node()
    const node = attempt(logger, 'node could not be registered', () => {
      if (existing === undefined) return api.create(kinds.node, newNode(this.spec, now))
      const patch = adoptionPatch(this.spec, existing)
      return patch === undefined ? existing : api.patch(kinds.node, undefined, this.nodeName, patch)
    })
    if (node === undefined) return
    this.#registered = true
    this.#reportedAt = now
    if (statusDiffers(this.spec, this.#ready, node)) this.#reportStatus(now)
    this.#renewLease(node)
    if (api.get(kinds.csiNode, undefined, this.nodeName) === undefined) {
      attempt(logger, 'CSINode could not be created', () =>
        api.create(kinds.csiNode, newCsiNode(this.nodeName, ownerOf(node), settings)),
      )
    }
  }

  #beat(): void {
    if (this.#stopped) return
    const { clock, settings, timers } = this.#context
    timers.after(settings.leaseRenewMs, () => this.#beat())
    if (clock.monotonic() < this.#silentUntil) return
    const node = this.#node()
    if (node === undefined) {
      if (settings.reRegister || !this.#registered) this.#register()
      return
    }
    this.#renewLease(node)
    this.#devices.assert()
    const now = clock.now()
    const due = now - this.#reportedAt >= settings.statusReportMs
    if (due || statusDiffers(this.spec, this.#ready, node)) this.#reportStatus(now)
  }

  #reportStatus(nowMs: number): void {
    const { api, logger } = this.#context
    const node = this.#node()
    if (node === undefined) return
    const status = nodeStatus(this.spec, this.#ready, node, nowMs)
    this.#reportedAt = nowMs
    attempt(logger, 'node status could not be written', () =>
      api.patch(kinds.node, undefined, this.nodeName, { status }, 'status'),
    )
    const wasReady = node.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True')
    if (this.#ready && wasReady !== true) for (const worker of this.#workers.values()) worker.reassert()
  }

  #renewLease(node: Node): void {
    const { api, clock, logger, settings } = this.#context
    const now = clock.now()
    attempt(logger, 'lease could not be renewed', () => {
      if (api.get(kinds.lease, leaseNamespace, this.nodeName) === undefined) {
        return api.create(kinds.lease, newLease(this.nodeName, ownerOf(node), settings, now))
      }
      const { leaseDurationSeconds } = settings
      const renewal = { holderIdentity: this.nodeName, leaseDurationSeconds, renewTime: rfc3339Micro(now) }
      return api.patch(kinds.lease, leaseNamespace, this.nodeName, { spec: renewal })
    })
  }

  #whenStartAllowed(start: () => void): void {
    const most = this.spec.maxParallelStarts ?? 0
    if (most > 0 && this.#starting >= most) {
      this.#waitingStarts.push(start)
      return
    }
    this.#starting++
    start()
  }

  #startDone(): void {
    this.#starting--
    const next = this.#waitingStarts.shift()
    if (next === undefined || this.#stopped) return
    this.#starting++
    next()
  }
}

/** Pod addresses of one node; assigns the lowest free one. */
class PodAddresses {
  readonly #subnet: string
  readonly #taken = new Set<number>()

  constructor(subnet: string) {
    this.#subnet = subnet
  }

  take(): string {
    let last = 2
    while (last < 254 && this.#taken.has(last)) last++
    this.#taken.add(last)
    return `${this.#subnet}.${last}`
  }

  release(ip: string): void {
    this.#taken.delete(Number(ip.slice(ip.lastIndexOf('.') + 1)))
  }
}
