/** Plays rounds on the real control plane, one after the other, each in an empty cluster. */
import {
  type KubeObject,
  karpenterKinds,
  kinds,
  labels,
  type NodePool,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Clock } from '@tenon/runtime'
import { podDeleters } from '../audit.ts'
import { inParallel } from '../parallel.ts'
import type { Autoscaler } from './autoscaler.ts'
import { type Item, proofKinds } from './objects.ts'
import { nodeClassName, proofPools } from './pools.ts'
import { patience } from '../patience.ts'
import { type Outcome, outcomeOf } from './outcome.ts'
import { VolumeProvisioner } from './volume-provisioner.ts'

const pollMs = 50
/** Claims exist this long before their nodes, so that passes in between must count on them. */
const nodeRegistrationDelay = '1s'
/** How long a pod may be pending without a change before the scheduler is made to retry it. */
const nudgeMs = 5000
const preparingMs = 15_000
const leavingMs = 15_000

const nodeClass = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: nodeClassName },
  spec: { nodeRegistrationDelay },
}

/** How a round is played. */
export interface Rules {
  readonly withinMs: number
  readonly isOneDecision: boolean
}

/** The cluster of a proof: pools, their node class, and the namespaces of all rounds. */
export class Field {
  readonly #autoscaler: Autoscaler
  readonly #client: KubeClient
  readonly #clock: Clock
  readonly #folder: string
  readonly #patience: number
  readonly #volumes: VolumeProvisioner

  /**
   * @param folder of the control plane.
   * @param factor on every timeout, beside {@link patience}; usually 1.
   */
  constructor(autoscaler: Autoscaler, clock: Clock, folder: string, factor: number) {
    this.#autoscaler = autoscaler
    this.#folder = folder
    this.#client = autoscaler.client
    this.#clock = clock
    this.#patience = factor * patience
    this.#volumes = new VolumeProvisioner(autoscaler.client, autoscaler.operator.caches)
  }

  /** Creates pools and namespaces, and waits until pods can be created in all of them. */
  async prepare(namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>): Promise<void> {
    await this.#client.create(kwokNodeClassKind, nodeClass)
    for (const pool of proofPools) await this.#client.create(karpenterKinds.nodePool, pool)
    const { nodePools } = this.#autoscaler.operator.caches
    await this.#until(
      'every pool is ready',
      preparingMs,
      () => nodePools.size === proofPools.length && nodePools.list().every(isReady),
    )
    const names = Object.keys(namespaces)
    await inParallel(names, async (name) => {
      const metadata = { name, labels: namespaces[name] ?? {} }
      await this.#client.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata })
    })
    await this.#until('every namespace has its service account', preparingMs, async () => {
      const accounts = await this.#client.list(proofKinds.serviceAccount)
      const ready = new Set(accounts.map(({ metadata }) => metadata.namespace))
      return names.every((name) => ready.has(name))
    })
  }

  /**
   * Creates the items. Once the scheduler has rejected every pod, enables launches, and reports the state when
   * all pods are bound or after `withinMs`. Cleans up.
   * @param rules.isOneDecision disables the pools after the first decision that launches.
   */
  async play(items: readonly Item[], { withinMs, isOneDecision }: Rules): Promise<Outcome> {
    const wanted = items.reduce((sum, each) => sum + each.pods, 0)
    try {
      const createdMs = this.#clock.now()
      await this.#create(items, wanted)
      this.#autoscaler.forget()
      const start = this.#clock.monotonic()
      this.#autoscaler.offer(true)
      if (isOneDecision) await this.#stopLaunching()
      const isComplete = await this.#bound(withinMs)
      const seconds = (this.#clock.monotonic() - start) / 1000
      // A pass in progress when the last pod was bound may still launch.
      if (isComplete) await this.#clock.sleep(300)
      const { nodes, nodeClaims } = this.#autoscaler.operator.caches
      const pods = this.#pods()
      return outcomeOf({
        pods,
        nodes: nodes.list(),
        claims: nodeClaims.list(),
        decisions: this.#autoscaler.decisions,
        seconds,
        podDeleters: pods.length < wanted ? podDeleters(this.#folder, createdMs) : [],
      })
    } finally {
      await this.#clear(items)
    }
  }

  /** Limits every pool to the nodes of the first decision, so that later ones can only reject pods. */
  async #stopLaunching(): Promise<void> {
    const { nodeClaims } = this.#autoscaler.operator.caches
    await this.#until('something is launched', preparingMs, () => {
      const wanted = this.#autoscaler.decisions.launches[0]
      return wanted !== undefined && nodeClaims.size >= wanted
    })
    const poolsOfClaims = nodeClaims.list().map(({ metadata }) => metadata.labels?.[labels.nodePool])
    await inParallel(proofPools, ({ metadata: { name } }) => {
      const nodes = poolsOfClaims.filter((pool) => pool === name).length
      return this.#client.patch(
        karpenterKinds.nodePool,
        { name },
        { spec: { limits: { nodes: String(nodes) } } },
      )
    })
  }

  /**
   * Waits until all pods are bound. The scheduler of 1.36 does not retry a pod with affinity by
   * `namespaceSelector` when its target is bound; a changed label makes it retry.
   */
  async #bound(withinMs: number): Promise<boolean> {
    const isDone = () => this.#pods().every(isBound)
    for (let leftMs = withinMs * this.#patience; leftMs > 0; leftMs -= nudgeMs) {
      if (await this.#within(Math.min(leftMs, nudgeMs), isDone)) return true
      const waiting = this.#pods().filter((pod) => !isBound(pod))
      await inParallel(waiting, async ({ metadata: { name, namespace = '' } }) => {
        const patch = { metadata: { labels: { 'proof.example/nudge': String(leftMs) } } }
        await this.#client.patch(kinds.pod, { name, namespace }, patch)
      })
    }
    return isDone()
  }

  /** Removes what {@link prepare} created; namespaces are deleted in the background. */
  async leave(namespaces: readonly string[]): Promise<void> {
    this.#volumes.stop()
    for (const { metadata } of proofPools) await this.#delete(karpenterKinds.nodePool, { metadata })
    await this.#delete(kwokNodeClassKind, nodeClass)
    await inParallel(namespaces, (name) => this.#delete(kinds.namespace, { metadata: { name } }))
    await this.#until('pools are gone', leavingMs, async () => {
      return (await this.#client.list(karpenterKinds.nodePool)).length === 0
    })
  }

  async #create(items: readonly Item[], pods: number): Promise<void> {
    const create = ({ type, object }: Item) => this.#client.create(type, object)
    await inParallel(
      items.filter((each) => each.pods === 0),
      create,
    )
    await inParallel(
      items.filter((each) => each.pods > 0),
      create,
    )
    const { persistentVolumeClaims } = this.#autoscaler.operator.caches
    await this.#until('the scheduler has refused every pod, and given volumes are bound', preparingMs, () => {
      const given = persistentVolumeClaims.list().filter(({ spec }) => (spec.volumeName ?? '') !== '')
      return (
        this.#pods().length === pods &&
        this.#pods().every(isRefused) &&
        given.every(({ status }) => status?.phase === 'Bound')
      )
    })
  }

  async #clear(items: readonly Item[]): Promise<void> {
    const { nodes, nodeClaims, pods, persistentVolumeClaims } = this.#autoscaler.operator.caches
    this.#autoscaler.offer(false)
    await inParallel(
      items.filter(({ type }) => type !== kinds.pod),
      ({ type, object }) => this.#delete(type, object),
    )
    await inParallel(proofPools, ({ metadata: { name } }) =>
      this.#client.patch(karpenterKinds.nodePool, { name }, { spec: { limits: null } }),
    )
    const replicaSets = await this.#client.list(proofKinds.replicaSet)
    await inParallel(replicaSets, (each) => this.#delete(proofKinds.replicaSet, each))
    await inParallel(pods.list(), (pod) => this.#delete(kinds.pod, pod))
    await inParallel(nodeClaims.list(), (claim) => this.#drop(karpenterKinds.nodeClaim, claim))
    await inParallel(nodes.list(), (node) => this.#drop(kinds.node, node))
    const volumes = await this.#client.list(kinds.persistentVolume)
    await inParallel(volumes, (volume) => this.#delete(kinds.persistentVolume, volume))
    await this.#until('pods, claims, volumes and nodes of the round are gone', leavingMs, () => {
      return [nodes, nodeClaims, pods, persistentVolumeClaims].every((cache) => cache.size === 0)
    })
    // A volume outlives its claim for a moment, and the next round may use its name.
    await this.#until(
      'volumes of the round are gone',
      leavingMs,
      async () => (await this.#client.list(kinds.persistentVolume)).length === 0,
    )
  }

  #pods(): readonly Pod[] {
    return this.#autoscaler.operator.caches.pods.list()
  }

  async #delete(type: ResourceType, { metadata }: Pick<KubeObject, 'metadata'>): Promise<void> {
    const { name, namespace } = metadata
    const key = { name, ...(namespace !== undefined && { namespace }) }
    await this.#client.delete(type, key, { propagationPolicy: 'Background' }).catch((error: unknown) => {
      if (!isKubeError(error, 'notFound')) throw error
    })
  }

  /** Deletes without the operator's graceful termination, which waits for instances to end. */
  async #drop(type: ResourceType, object: Pick<KubeObject, 'metadata'>): Promise<void> {
    await this.#delete(type, object)
    const patch = { metadata: { finalizers: null } }
    await this.#client.patch(type, { name: object.metadata.name }, patch).catch((error: unknown) => {
      if (!isKubeError(error, 'notFound')) throw error
    })
  }

  async #within(ms: number, probe: () => boolean | Promise<boolean>): Promise<boolean> {
    const deadline = this.#clock.monotonic() + ms
    while (!(await probe())) {
      if (this.#clock.monotonic() > deadline) return false
      await this.#clock.sleep(pollMs)
    }
    return true
  }

  async #until(what: string, ms: number, probe: () => boolean | Promise<boolean>): Promise<void> {
    const limitMs = ms * this.#patience
    if (await this.#within(limitMs, probe)) return
    throw new Error(`not within ${limitMs / 1000} s: ${what}\n${this.#autoscaler.log.slice(-20).join('\n')}`)
  }
}

const isReady = ({ status }: NodePool) =>
  (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')

const isBound = (pod: Pod) => (pod.spec.nodeName ?? '') !== ''

const isRefused = (pod: Pod) =>
  (pod.status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable',
  )
