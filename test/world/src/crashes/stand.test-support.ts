/** A cluster with one of the real providers, small and quick, in which controllers die. */
import {
  apiVersionOf,
  karpenterKinds,
  type KubeObject,
  kinds,
  labels,
  nodeClassLabel,
  type NodeClaim,
  type NodePool,
  type Pod,
} from '@tenon/api'
import type { Credentials } from '@tenon/devcluster'
import { cleverNodeClassKind } from '@tenon/provider-clever-cloud'
import { exoscaleNodeClassKind } from '@tenon/provider-exoscale'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Death } from '../mortality.ts'
import { aKwokPool, type RunningOperator, World, type WorldOptions } from '../world.ts'
import { Ledger } from './ledger.test-support.ts'

export const seconds = 1000
export const minutes = 60_000

export type ProviderName = 'kwok' | 'exoscale' | 'clever-cloud'

/** What differs between the providers. */
const flavours = {
  kwok: {
    nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
    types: ['c-1x-amd64-linux', 's-2x-amd64-linux'],
    largest: 's-2x-amd64-linux',
    nodeClassKind: kwokNodeClassKind,
    nodeClassSpec: {},
  },
  'clever-cloud': {
    nodeClassRef: { group: 'karpenter.clever-cloud.com', kind: 'CleverNodeClass', name: 'default' },
    types: ['2XS', 'XS'],
    largest: 'XS',
    nodeClassKind: cleverNodeClassKind,
    nodeClassSpec: {},
  },
  exoscale: {
    nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'default' },
    types: ['standard.medium', 'standard.large'],
    largest: 'standard.large',
    nodeClassKind: exoscaleNodeClassKind,
    nodeClassSpec: { imageTemplateSelector: {}, diskSize: 50 },
  },
} as const

/** An instance of the simulated cloud is there within seconds, so that runs stay short. */
const quickCloud = {
  operationDelay: { minMs: 300, maxMs: 900 },
  bootDelay: { minMs: 2500, maxMs: 4000 },
} as const

/** As quick, and without a quota in the way. */
const quickPlatform = {
  quota: { cpu: 1000, memoryGb: 1000 },
  answerDelay: { minMs: 300, maxMs: 900 },
  nodeDelay: { minMs: 2500, maxMs: 4000 },
  syncDelay: { minMs: 3000, maxMs: 5000 },
  deletionDelay: { minMs: 300, maxMs: 900 },
} as const

type Metadata = Partial<KubeObject['metadata']>

/** One world of one run, and the controllers that live and die in it. */
export class Stand {
  readonly world: World
  readonly provider: ProviderName
  readonly ledger: Ledger
  operator!: RunningOperator

  private constructor(world: World, provider: ProviderName, ledger: Ledger) {
    this.world = world
    this.provider = provider
    this.ledger = ledger
  }

  /** Starts the world and a first controller; the node class and a NodePool `default` are ready. */
  static async open(
    provider: ProviderName,
    credentials: Credentials,
    {
      pool,
      settings,
      ...options
    }: Partial<WorldOptions> & { readonly pool?: Partial<NodePool['spec']> } = {},
  ): Promise<Stand> {
    const ledger = new Ledger()
    const world = await World.start({
      seed: 1,
      provider,
      credentials,
      apiPath: (inner) => ledger.watchKubernetes(inner),
      cloudPath: (inner) => ledger.watchCloud(inner),
      cloudSettings: quickCloud,
      cleverCloud: { settings: quickPlatform },
      // What is told of conditions is acted upon by nobody: to die at each of these events would take long.
      settings: { clusterStateObservability: false, ...settings },
      ...options,
    })
    ledger.open(world)
    const stand = new Stand(world, provider, ledger)
    stand.#createPool(pool)
    await stand.start()
    await stand.pass(3 * seconds)
    return stand
  }

  /** The most expensive type that NodePool `default` may launch. */
  get largestType(): string {
    return flavours[this.provider].largest
  }

  /** Starts the next controller. */
  async start(
    { atWrite, when }: Death = { atWrite: Number.POSITIVE_INFINITY, when: 'after' },
  ): Promise<void> {
    this.operator = await this.world.startOperator(atWrite, when)
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  async until(done: () => boolean, limitMs: number = 10 * minutes): Promise<void> {
    if (!(await this.world.clock.advanceUntil(done, limitMs)))
      throw new Error('the world did not get there in time')
  }

  /** A claim of NodePool `default`, as somebody would write it by hand. */
  createClaim(
    name: string,
    spec: Partial<NodeClaim['spec']> = {},
    { labels: more, ...metadata }: Metadata = {},
  ): void {
    const { nodeClassRef, types } = flavours[this.provider]
    const pool = this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'default')
    this.world.create(karpenterKinds.nodeClaim, {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        labels: { [labels.nodePool]: 'default', [nodeClassLabel(nodeClassRef)]: 'default', ...more },
        ownerReferences: [
          {
            apiVersion: 'karpenter.sh/v1',
            kind: 'NodePool',
            name: 'default',
            uid: pool?.metadata.uid ?? '',
            blockOwnerDeletion: true,
          },
        ],
        ...metadata,
      },
      spec: {
        nodeClassRef,
        expireAfter: 'Never',
        requirements: [{ key: labels.instanceType, operator: 'In', values: [...types] }],
        ...spec,
      },
    })
  }

  /** A pod bound to a node; its kubelet runs it. */
  createPod(name: string, nodeName: string, metadata: Metadata = {}, spec: Partial<Pod['spec']> = {}): void {
    this.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', ...metadata },
      spec: {
        nodeName,
        terminationGracePeriodSeconds: 10,
        containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
        ...spec,
      },
    })
  }

  claim(name: string): NodeClaim | undefined {
    return this.world.cluster.server.local.get(karpenterKinds.nodeClaim, undefined, name)
  }

  /** A condition of a claim is True. */
  holds(claim: string, type: string): boolean {
    const conditions = this.claim(claim)?.status?.conditions ?? []
    return conditions.some((condition) => condition.type === type && condition.status === 'True')
  }

  runningPods(): readonly Pod[] {
    return this.world.pods().filter(({ status }) => status?.phase === 'Running')
  }

  delete(type: Parameters<World['cluster']['server']['local']['delete']>[0], name: string): void {
    this.world.cluster.server.local.delete(type, undefined, name)
  }

  async close(): Promise<void> {
    await this.world.bury(this.operator)
    this.world.cluster.stop()
    if (this.provider === 'clever-cloud') this.world.cleverCloud.stop()
  }

  #createPool(spec: Partial<NodePool['spec']> = {}): void {
    const { nodeClassRef, types, nodeClassKind, nodeClassSpec } = flavours[this.provider]
    this.world.create(nodeClassKind, {
      apiVersion: apiVersionOf(nodeClassKind),
      kind: nodeClassRef.kind,
      metadata: { name: nodeClassRef.name },
      spec: nodeClassSpec,
    } as KubeObject)
    const requirements = [{ key: labels.instanceType, operator: 'In' as const, values: [...types] }]
    this.world.create(
      karpenterKinds.nodePool,
      aKwokPool('default', {
        template: { spec: { nodeClassRef, requirements } },
        disruption: { consolidateAfter: 'Never' },
        ...spec,
      }),
    )
  }
}
