import { kinds, type Pod } from '@tenon/api'
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { KubeletHandle, KubeletRunner, KubeletSpec, LocalApi } from '../contract.ts'
import { ResourceTable } from '@tenon/filters'
import { AttachDetach } from './attach-detach.ts'
import { Kubelet } from './kubelet.ts'
import type { KubeletContext } from './kubelet-context.ts'
import { defaultKubeletSettings, type KubeletSettings } from './settings.ts'
import { TimerQueue } from './timer-queue.ts'

/** What kubelets need; absent settings have defaults. */
export interface KubeletOptions {
  readonly api: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings?: Partial<KubeletSettings>
}

/** The kubelets of one process. */
export interface Kubelets extends KubeletRunner {
  /** Stops all kubelets and their shared subscription. */
  stop(): void
  /** Names of nodes with a running kubelet, sorted. */
  running(): readonly string[]
  /** The kubelet of the node, if it runs under that name, sends no heartbeats for this time. */
  silence(nodeName: string, ms: number): void
  /**
   * The kubelet of the node, if it runs, restarts under another node name; nothing reports for the old Node any more.
   */
  rename(nodeName: string, to: string): void
}

/** Creates the runner; each kubelet begins with `start`. */
export function createKubelets(options: KubeletOptions): Kubelets {
  return new KubeletPool(options)
}

class KubeletPool implements Kubelets {
  readonly #context: KubeletContext
  readonly #kubelets = new Map<string, Kubelet>()
  /** All bound pods by node and uid, as a kubelet may start after pods were bound to its node. */
  readonly #podsByNode = new Map<string, Map<string, Pod>>()
  /** The new kubelet of a renamed instance. */
  readonly #renamed = new Map<Kubelet, KubeletHandle>()
  readonly #attachDetach: AttachDetach
  readonly #unsubscribe: () => void
  #started = 0

  constructor({ api, clock, random, logger, settings }: KubeletOptions) {
    this.#context = {
      api,
      clock,
      random: random.fork('kubelets'),
      logger,
      settings: { ...defaultKubeletSettings, ...settings },
      timers: new TimerQueue(clock),
      table: new ResourceTable(),
      startedAt: clock.now(),
    }
    this.#attachDetach = new AttachDetach(this.#context, (nodeName) => this.#kubelets.has(nodeName))
    this.#unsubscribe = api.subscribe<Pod>(kinds.pod, {
      added: (pod) => this.#observePod(pod),
      updated: (pod) => this.#observePod(pod),
      deleted: (pod) => this.#forgetPod(pod),
    })
  }

  start(spec: KubeletSpec): KubeletHandle {
    if (this.#kubelets.has(spec.nodeName)) throw new Error(`a kubelet for ${spec.nodeName} runs already`)
    const number = this.#started++
    const kubelet: Kubelet = new Kubelet(
      this.#context,
      spec,
      `10.${64 + ((number >> 8) % 128)}.${number & 255}`,
      (pod) => this.#attachDetach.ready(pod),
      () => {
        if (this.#kubelets.get(spec.nodeName) === kubelet) this.#kubelets.delete(spec.nodeName)
        this.#renamed.get(kubelet)?.stop()
        this.#renamed.delete(kubelet)
      },
    )
    this.#kubelets.set(spec.nodeName, kubelet)
    kubelet.begin()
    for (const pod of this.#podsByNode.get(spec.nodeName)?.values() ?? []) kubelet.observePod(pod)
    return kubelet
  }

  stop(): void {
    for (const kubelet of this.#kubelets.values()) kubelet.stop()
    this.#unsubscribe()
    this.#context.timers.stop()
  }

  running(): readonly string[] {
    return [...this.#kubelets.keys()].toSorted()
  }

  silence(nodeName: string, ms: number): void {
    const kubelet = this.#kubelets.get(nodeName)
    if (kubelet !== undefined && !this.#renamed.has(kubelet)) kubelet.silence(ms)
  }

  rename(nodeName: string, to: string): void {
    const kubelet = this.#kubelets.get(nodeName)
    if (kubelet === undefined || this.#kubelets.has(to)) return
    kubelet.silence(Number.POSITIVE_INFINITY)
    this.#renamed.set(kubelet, this.start({ ...kubelet.spec, nodeName: to, wasReady: true }))
  }

  #observePod(pod: Pod): void {
    const nodeName = pod.spec.nodeName ?? ''
    if (nodeName === '') return
    const uid = pod.metadata.uid ?? ''
    const pods = this.#podsByNode.get(nodeName) ?? new Map<string, Pod>()
    pods.set(uid, pod)
    this.#podsByNode.set(nodeName, pods)
    const ended = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
    this.#attachDetach.observePod(uid, ended ? undefined : pod)
    this.#kubelets.get(nodeName)?.observePod(pod)
  }

  #forgetPod(pod: Pod): void {
    const nodeName = pod.spec.nodeName ?? ''
    const uid = pod.metadata.uid ?? ''
    this.#attachDetach.observePod(uid, undefined)
    const pods = this.#podsByNode.get(nodeName)
    pods?.delete(uid)
    if (pods?.size === 0) this.#podsByNode.delete(nodeName)
    this.#kubelets.get(nodeName)?.forgetPod(uid)
  }
}
