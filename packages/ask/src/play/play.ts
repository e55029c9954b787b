/** A cluster, the operator and a simulated cloud in one process on virtual time. */
import {
  controllerOf,
  type KubeObject,
  nodeClaimCrd,
  nodeOverlayCrd,
  nodePoolCrd,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import {
  createCredentials,
  type Credentials,
  type DevCluster,
  type SimulatedCloud,
  startDevCluster,
} from '@tenon/devcluster'
import { createCacheRegistry, createKubeClient, type EventRecorder } from '@tenon/kube'
import { InlineDecider, Operator, type Settings } from '@tenon/operator'
import { type Logger, rfc3339, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { Bill } from './bill.ts'
import { CatalogueCloud, type CloudTimes, type CloudTraits } from './catalogue-cloud.ts'
import type { Catalogue } from './catalogue.ts'
import { Owners } from './owners.ts'
import { crdObject, nodeClassCrd, nodeClassKinds, playedObjects } from './played-objects.ts'
import { putObject, removeObject } from './put-object.ts'
import { PlayedPods } from './pods.ts'
import { type PlayReport, reportOf } from './report.ts'
import { restoreCluster } from './restore-cluster.ts'
import { Tally } from './tally.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const ownCrds = [
  ['nodepools', nodePoolCrd],
  ['nodeclaims', nodeClaimCrd],
  ['nodeoverlays', nodeOverlayCrd],
] as const
/** Milliseconds; longer than any play. */
const never = 1e12

/** Durations that the facts do not contain and that are assumed, in milliseconds. */
export interface PlayTimes extends CloudTimes {
  /** From the Node's registration until it is Ready. */
  readonly nodeReadyMs: number
  /** From a pod's binding until it is Ready. */
  readonly podStartMs: number
  /** From a pod's deletion until it is gone; at most its grace period. */
  readonly podStopMs: number
}

/** A node is Ready one minute after its launch, a pod five seconds after its binding. */
export const defaultPlayTimes: PlayTimes = {
  bootMs: 50_000,
  nodeReadyMs: 10_000,
  stopMs: 0,
  podStartMs: 5_000,
  podStopMs: 1_000,
}

/** The start of a play; equal options yield equal results. */
export interface PlayOptions {
  /** As in a snapshot. */
  readonly objects: readonly KubeObject[]
  readonly catalogue: Catalogue
  readonly settings: Settings
  readonly seed: number
  /** Unix milliseconds. */
  readonly startMs: number
  readonly times?: Partial<PlayTimes>
  /** Version of the API server; default `v1.36.0`. */
  readonly kubernetesVersion?: string
  /** What the provider says about its nodes, besides the catalogue. */
  readonly traits?: CloudTraits
  /** Keys of the cluster; default: generated. */
  readonly credentials?: Credentials
  readonly logger?: Logger
}

/** A change of a workload or of any other object. */
export type PlayChange =
  /** A pod is created; changes refer to it by `id` until it ends. */
  | { readonly kind: 'podAdded'; readonly id: string; readonly pod: Pod }
  | { readonly kind: 'podEnded'; readonly id: string }
  /** An object is created or replaced; its status is kept. */
  | { readonly kind: 'put'; readonly object: KubeObject }
  | {
      readonly kind: 'removed'
      readonly apiVersion: string
      readonly objectKind: string
      readonly namespace?: string
      readonly name: string
    }

/** On initial pods: the id by which changes refer to the pod; default `NAMESPACE/NAME`. */
export const playIdAnnotation = 'play.tenon.sh/id'

/** Time in Unix milliseconds. */
export interface TimedChange {
  readonly atMs: number
  readonly change: PlayChange
}

interface PlayParts {
  readonly clock: VirtualClock
  readonly cluster: DevCluster<SimulatedCloud>
  readonly cloud: CatalogueCloud
  readonly operator: Operator
  readonly bill: Bill
  readonly tally: Tally
  readonly pods: PlayedPods
}

/** Objects of the snapshot that the simulated cluster does not serve. */
export interface PlayGaps {
  readonly leftOut: readonly string[]
}

/** A cluster that is played. Time only passes in {@link runTo}. */
export class Play {
  readonly #parts: PlayParts
  readonly gaps: PlayGaps

  /** The durations that were assumed. */
  readonly times: PlayTimes

  private constructor(parts: PlayParts, gaps: PlayGaps, times: PlayTimes) {
    this.#parts = parts
    this.gaps = gaps
    this.times = times
  }

  /** Restores the cluster and makes the operator lead. */
  static async start(options: PlayOptions): Promise<Play> {
    const clock = new VirtualClock(options.startMs, 0)
    const random = new SeededRandom(options.seed)
    const logger = options.logger ?? silentLogger
    const times = { ...defaultPlayTimes, ...options.times }
    const kubernetesVersion = options.kubernetesVersion ?? 'v1.36.0'
    const objects = playedObjects(options.objects)
    const nodeClasses = nodeClassKinds(objects)
    const cluster = startDevCluster<SimulatedCloud>({
      clock,
      random: random.fork('cluster'),
      logger,
      credentials: options.credentials ?? (await createCredentials(clock.now())),
      gitVersion: kubernetesVersion,
      ...clusterPace(times),
      simulator: { prepare: () => undefined, start: () => ({ stop: () => undefined }) },
    })
    const api = cluster.server.local
    for (const [plural, definition] of ownCrds)
      api.create(crdKind, crdObject(definition, `${plural}.karpenter.sh`))
    for (const type of nodeClasses) api.create(crdKind, nodeClassCrd(type))
    const bill = new Bill(options.startMs)
    const tally = new Tally(options.startMs)
    const cloud = new CatalogueCloud({
      clock,
      random: random.fork('cloud'),
      kubelets: cluster.kubelets,
      catalogue: options.catalogue,
      nodeClasses,
      times,
      bill,
      kubeletVersion: kubernetesVersion,
      ...(options.traits && { traits: options.traits }),
    })
    const gaps = restoreCluster(cluster, cloud, {
      objects,
      nodeClasses,
      catalogue: options.catalogue,
      now: rfc3339(clock.now()),
      kubeletVersion: kubernetesVersion,
    })
    const pods = new PlayedPods(api, clock, tally, new Owners(cluster.server))
    for (const pod of objects.pods)
      if (isWorkload(pod)) pods.adopt(pod, pod.metadata.annotations?.[playIdAnnotation])
    const operator = await startOperator({
      clock,
      random,
      logger,
      cluster,
      cloud,
      settings: options.settings,
    })
    return new Play({ clock, cluster, cloud, operator, bill, tally, pods }, gaps, times)
  }

  /** Unix milliseconds. */
  now(): number {
    return this.#parts.clock.now()
  }

  /** Applies a change now. */
  apply(change: PlayChange): void {
    const { cluster, pods } = this.#parts
    const api = cluster.server.local
    switch (change.kind) {
      case 'podAdded':
        pods.add(change.id, change.pod)
        return
      case 'podEnded':
        pods.end(change.id)
        return
      case 'put':
        putObject(api, change.object)
        return
      case 'removed':
        removeObject(api, change)
    }
  }

  /** Lets time pass until `atMs`. */
  async runTo(atMs: number): Promise<void> {
    const { clock } = this.#parts
    if (atMs > clock.now()) await clock.advance(atMs - clock.now())
  }

  /** Applies changes in order of time, each at its own; past ones immediately. */
  async run(changes: Iterable<TimedChange>, untilMs: number): Promise<void> {
    for (const { atMs, change } of changes) {
      if (atMs > untilMs) break
      await this.runTo(atMs)
      this.apply(change)
    }
    await this.runTo(untilMs)
  }

  list<T extends KubeObject>(type: ResourceType<T>): readonly T[] {
    return this.#parts.cluster.server.local.list(type)
  }

  /** What has happened so far. */
  async report(): Promise<PlayReport> {
    const { clock, bill, tally, cloud, operator } = this.#parts
    bill.advance(clock.now())
    tally.advance(clock.now())
    return await reportOf({ bill, tally, launches: cloud.launches, registry: operator.metrics.registry })
  }

  async stop(): Promise<void> {
    const { clock, cluster, operator, pods } = this.#parts
    pods.stop()
    const stopping = operator.stop()
    await Promise.race([stopping, clock.advance(1000)])
    cluster.stop()
  }
}

/** Pods of DaemonSets and static pods belong to their nodes. */
function isWorkload(pod: Pod): boolean {
  const kind = controllerOf(pod)?.kind
  const phase = pod.status?.phase
  return kind !== 'DaemonSet' && kind !== 'Node' && phase !== 'Succeeded' && phase !== 'Failed'
}

/**
 * Leaves out heartbeats, managed fields and Events, which nobody reads here, and workload controllers, which
 * the player replaces.
 */
function clusterPace(times: PlayTimes): object {
  const start = times.podStartMs
  return {
    recordsOwners: false,
    // Snapshots have neither ServiceAccounts, which manifests name, nor the security contexts of pods.
    checksPods: false,
    kubelets: {
      readyDelay: [times.nodeReadyMs, times.nodeReadyMs],
      pullDelay: [0, 0],
      startDelay: [start, start],
      stopDelay: [times.podStopMs, times.podStopMs],
      initRunTime: [0, 0],
      jobRunSeconds: never / 1000,
      leaseRenewMs: never,
      statusReportMs: never,
    },
    controllers: {
      nodeMonitorGraceMs: 4 * never,
      nodeStartupGraceMs: 4 * never,
      recordsEvents: false,
      without: [
        'cronjob-controller',
        'deployment-controller',
        'endpoints-controller',
        'horizontal-pod-autoscaler-controller',
        'job-controller',
        'replicaset-controller',
        'replicationcontroller-controller',
        'statefulset-controller',
      ],
    },
    scheduler: { eventsPerSecond: 0, eventBurst: 0 },
  }
}

const noEvents: EventRecorder = { record: () => undefined }

async function startOperator(parts: {
  readonly clock: VirtualClock
  readonly random: SeededRandom
  readonly logger: Logger
  readonly cluster: DevCluster<SimulatedCloud>
  readonly cloud: CatalogueCloud
  readonly settings: Settings
}): Promise<Operator> {
  const { clock, logger, cluster } = parts
  const random = parts.random.fork('operator')
  const client = createKubeClient({ transport: cluster.transport, clock, userAgent: 'karpenter/play' })
  const registry = createCacheRegistry({ client, clock, logger, random })
  const operator = new Operator({
    kubernetes: { client, registry, events: noEvents },
    runtime: { clock, random, logger },
    provider: parts.cloud,
    decider: new InlineDecider(clock),
    settings: parts.settings,
  })
  const observing = operator.observe()
  await clock.advanceUntil(() => operator.waitingFor.length === 0, 60_000)
  await observing
  operator.lead()
  return operator
}
