/** Words for stories about nodes that turn out not to be what they were bought for. */
import type { TestContext } from 'node:test'
import {
  type ContainerPort,
  karpenterKinds,
  kinds,
  labels,
  type KubeObject,
  type NodeClaim,
  type NodePool,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { aNodeClass, nodeClassKind } from '../exoscale/manifests.test-support.ts'
import { type RunningOperator, World, type WorldOptions } from '../world.ts'

export const seconds = 1000
export const minutes = 60 * seconds
export const hours = 60 * minutes
const imageOfPods = 'registry.k8s.io/pause'

interface EventObject extends KubeObject {
  readonly reason: string
  readonly type: string
  readonly message: string
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

const credentials = await createCredentials(Date.UTC(2026, 0, 1))

/** A world with real instances, which notes every claim that there ever was. */
export class EvidenceStage {
  readonly world: World
  /** Every claim in order of creation, those that are gone included, as it was last. */
  readonly launched = new Map<string, NodeClaim>()
  operator!: RunningOperator

  private constructor(world: World) {
    this.world = world
    world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
      added: (claim) => this.launched.set(claim.metadata.name, claim),
      updated: (claim) => this.launched.set(claim.metadata.name, claim),
    })
  }

  /** The operator is started on its own. */
  static async open(
    t: Pick<TestContext, 'after'>,
    options: Partial<WorldOptions> = {},
  ): Promise<EvidenceStage> {
    const world = await World.start({ seed: 5, provider: 'exoscale', credentials, ...options })
    world.create(nodeClassKind, aNodeClass('standard'))
    const stage = new EvidenceStage(world)
    t.after(() => stage.#close())
    return stage
  }

  async start(): Promise<void> {
    this.operator = await this.world.startOperator()
  }

  /** The operator's process dies and another one starts. */
  async restart(): Promise<void> {
    await this.world.bury(this.operator)
    await this.start()
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  /** Passes time until something holds, at most so long. */
  async until(isDone: () => boolean, mostMs: number): Promise<void> {
    for (let ms = 0; ms < mostMs && !isDone(); ms += seconds) await this.pass(seconds)
    if (!isDone()) throw new Error(`it did not come to that within ${mostMs / seconds} s`)
  }

  /** Deletes a pod at once. */
  remove(pod: string): void {
    this.world.cluster.server.local.delete(kinds.pod, 'default', pod, { gracePeriodSeconds: 0 })
  }

  /** Changes a NodePool. */
  change(pool: string, patch: object): void {
    this.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, pool, patch)
  }

  /** Instance types of the claims that were launched so far, in order. */
  types(): readonly string[] {
    return [...this.launched.values()].map(({ metadata }) => metadata.labels?.[labels.instanceType] ?? '')
  }

  /** Instance type under a pod that has a node. */
  typeUnder(name: string): string | undefined {
    const bound = this.pod(name)?.spec.nodeName ?? ''
    return this.world.nodes().find(({ metadata }) => metadata.name === bound)?.metadata.labels?.[
      labels.instanceType
    ]
  }

  pod(name: string): Pod | undefined {
    return this.world.pods().find(({ metadata }) => metadata.name === name)
  }

  pool(name: string): NodePool {
    const found = this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, name)
    if (found === undefined) throw new Error(`there is no NodePool ${name}`)
    return found
  }

  aPod(
    name: string,
    requests: Readonly<Record<string, string>>,
    {
      spec,
      ports = [],
      ...metadata
    }: Partial<Pod['metadata']> & {
      readonly spec?: Partial<Pod['spec']>
      readonly ports?: readonly ContainerPort[]
    } = {},
  ): void {
    this.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', ...metadata },
      spec: {
        containers: [{ name: 'app', image: imageOfPods, resources: { requests, limits: requests }, ports }],
        ...spec,
      },
    })
  }

  events(reason: string, type?: string): readonly string[] {
    return this.world.cluster.server.local
      .list(kinds.event as ResourceType<EventObject>)
      .filter((event) => event.reason === reason && (type === undefined || event.type === type))
      .map(({ message, involvedObject }) => `${involvedObject.kind}/${involvedObject.name}: ${message}`)
  }

  async #close(): Promise<void> {
    if (this.operator as RunningOperator | undefined) await this.world.bury(this.operator)
    await this.world.stop()
  }
}
