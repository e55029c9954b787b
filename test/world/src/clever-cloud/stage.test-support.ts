/** A cluster at the simulated Clever Cloud with the operator at work. */
import type { TestContext } from 'node:test'
import {
  karpenterKinds,
  type KubeObject,
  kinds,
  type NodePool,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { type CleverNodeClass, cleverNodeClassKind, type NodeGroup } from '@tenon/provider-clever-cloud'
import type { CleverCloud } from '@tenon/simulator-clever-cloud'
import { aDeployment, deploymentKind, type RunningOperator, World, type WorldOptions } from '../world.ts'

export const seconds = 1000
export const minutes = 60 * seconds

/** A quota that nothing reaches. */
export const plenty = { cpu: 100_000, memoryGb: 100_000 }

/** The class `default`. */
const nodeClass: CleverNodeClass = {
  apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
  kind: 'CleverNodeClass',
  metadata: { name: 'default' },
  spec: { labels: {} },
}

/** A NodePool of the class `default`. */
export function aPool(
  flavors: readonly string[] = ['2XS', 'XS', 'S', 'M'],
  spec: Partial<NodePool['spec']> = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: cleverNodeClassKind.group, kind: cleverNodeClassKind.kind, name: 'default' },
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: flavors }],
        },
      },
      disruption: { consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
      ...spec,
    },
  }
}

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

const eventKind: ResourceType<EventObject> = {
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
}

/** One test's cluster. */
export class CleverStage {
  readonly world: World
  operator: RunningOperator

  private constructor(world: World, operator: RunningOperator) {
    this.world = world
    this.operator = operator
  }

  /** A cluster with a class and a NodePool, and an operator that leads. It ends with the test. */
  static async open(
    t: Pick<TestContext, 'after'>,
    { pool = aPool(), ...options }: Partial<WorldOptions> & { readonly pool?: NodePool } = {},
  ): Promise<CleverStage> {
    const world = await World.start({ seed: 1, provider: 'clever-cloud', ...options })
    world.create(cleverNodeClassKind, nodeClass)
    world.create(karpenterKinds.nodePool, pool)
    const stage = new CleverStage(world, await world.startOperator())
    t.after(() => stage.#close())
    await stage.pass(2 * seconds)
    return stage
  }

  get platform(): CleverCloud {
    return this.world.cleverCloud
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  /** @returns whether it came to be before `limitMs` had passed. */
  async until(done: () => boolean, limitMs: number): Promise<boolean> {
    return await this.world.clock.advanceUntil(done, limitMs)
  }

  deploy(name: string, replicas: number, requests?: Readonly<Record<string, string>>): void {
    this.world.create(deploymentKind, aDeployment(name, replicas, requests))
  }

  groups(): readonly NodeGroup[] {
    return this.world.nodeGroups()
  }

  flavors(): readonly string[] {
    return this.groups()
      .map(({ spec }) => spec.flavor)
      .toSorted((a, b) => (a < b ? -1 : 1))
  }

  running(): readonly Pod[] {
    return this.world.pods().filter(({ status }) => status?.phase === 'Running')
  }

  /** Whether every pod of a Deployment's size runs. */
  allRun(count: number): boolean {
    return this.running().length === count
  }

  /** Reasons of the events so far, each with its object. */
  events(): readonly string[] {
    return this.world.cluster.server.local
      .list(eventKind)
      .map(({ reason, involvedObject: { kind, name } }) => `${reason} ${kind}/${name}`)
  }

  /** What events with a reason say. */
  messages(reason: string): readonly string[] {
    return this.world.cluster.server.local
      .list(eventKind)
      .filter((event) => event.reason === reason)
      .map(({ message }) => message)
  }

  /** How often events with a reason were recorded for different objects. */
  eventCount(reason: string): number {
    return this.events().filter((event) => event.startsWith(`${reason} `)).length
  }

  nodes() {
    return this.world.cluster.server.local.list(kinds.node)
  }

  async #close(): Promise<void> {
    await this.world.bury(this.operator)
    await this.world.stop()
  }
}
