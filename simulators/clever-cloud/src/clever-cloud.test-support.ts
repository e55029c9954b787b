/** A cluster at a simulated Clever Cloud on virtual time, without an autoscaler. */
import assert from 'node:assert/strict'
import { isConditionTrue, kinds, type Node, conditionOf } from '@tenon/api'
import {
  createCredentials,
  type DevClusterOptions,
  type LocalApi,
  startDevCluster,
  type StoredObject,
} from '@tenon/devcluster'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { type NodeGroup, nodeGroupKind } from '@tenon/provider-clever-cloud'
import {
  type CleverCloud,
  type CleverCloudCluster,
  type CleverCloudOptions,
  cleverCloudSimulator,
} from './clever-cloud.ts'

/**
 * Every duration is known: an answer after 1 s, a node after 28 s, ready after 45 s, without
 * power 2 s after its deletion, and gone after 35 s.
 */
const steady: CleverCloudOptions['settings'] = {
  answerDelay: { minMs: 1_000, maxMs: 1_000 },
  nodeDelay: { minMs: 28_000, maxMs: 28_000 },
  syncDelay: { minMs: 45_000, maxMs: 45_000 },
  powerOffDelay: { minMs: 2_000, maxMs: 2_000 },
  deletionDelay: { minMs: 35_000, maxMs: 35_000 },
  emptyDeletionDelay: { minMs: 1_000, maxMs: 1_000 },
  leakDelay: { minMs: 120_000, maxMs: 120_000 },
}

let credentials: ReturnType<typeof createCredentials> | undefined

interface Commit {
  readonly revision: number
  readonly collection: string
  readonly key: string
  /** Undefined for a removal. */
  readonly object: StoredObject | undefined
}

interface Beginning extends CleverCloudOptions {
  readonly clock?: VirtualClock
  readonly seed?: string
  readonly initial?: DevClusterOptions<CleverCloud>['initial']
}

export class CleverCloudFixture {
  readonly clock: VirtualClock
  readonly cluster: CleverCloudCluster
  readonly api: LocalApi
  readonly #beginning: Beginning
  /** Every write since the beginning. */
  readonly #commits: Commit[] = []

  private constructor(clock: VirtualClock, cluster: CleverCloudCluster, beginning: Beginning) {
    this.clock = clock
    this.cluster = cluster
    this.api = cluster.server.localAs('kubectl')
    this.#beginning = beginning
    const { store } = cluster.server
    for (const { collection, key, object } of beginning.initial?.objects ?? [])
      this.#commits.push({ revision: 0, collection, key, object })
    if (beginning.initial === undefined)
      for (const collection of store.collections())
        collection.scan(
          {},
          (object, key) => this.#commits.push({ revision: 0, collection: collection.id, key, object }) > 0,
        )
    store.onCommit(({ id }, { revision, key, object, type }) => {
      this.#commits.push({
        revision,
        collection: id,
        key,
        object: type === 'DELETED' ? undefined : object,
      })
    })
  }

  static async start(beginning: Beginning = {}): Promise<CleverCloudFixture> {
    const { clock = new VirtualClock(), seed = '1', initial, settings, ...options } = beginning
    credentials ??= createCredentials(clock.now())
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom(seed),
      logger: silentLogger,
      credentials: await credentials,
      simulator: cleverCloudSimulator({ ...options, settings: { ...steady, ...settings } }),
      kubelets: { readyDelay: [2_000, 2_000] },
      keepsInstances: true,
      ...(initial && { initial }),
    })
    return new CleverCloudFixture(clock, cluster, { ...beginning, clock })
  }

  /** Number of the newest write. */
  get revision(): number {
    return this.cluster.server.store.revision
  }

  /** The process dies right after the write of this number, and a new one continues with what was saved. */
  async killedAfter(revision: number): Promise<CleverCloudFixture> {
    this.stop()
    const objects = new Map<string, Commit>()
    for (const commit of this.#commits) {
      if (commit.revision > revision) continue
      const id = `${commit.collection} ${commit.key}`
      if (commit.object === undefined) objects.delete(id)
      else objects.set(id, commit)
    }
    const saved = [...objects.values()].map(({ collection, key, object }) => ({
      collection,
      key,
      object: object as StoredObject,
    }))
    return await CleverCloudFixture.start({ ...this.#beginning, initial: { revision, objects: saved } })
  }

  get cloud(): CleverCloud {
    return this.cluster.cloud
  }

  create(name: string, spec: Partial<NodeGroup['spec']> = {}): NodeGroup {
    return this.api.create(nodeGroupKind, {
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: { name },
      spec: { flavor: '2XS', nodeCount: 1, ...spec },
    })
  }

  delete(name: string): void {
    this.api.delete(nodeGroupKind, undefined, name)
  }

  group(name: string): NodeGroup | undefined {
    return this.api.get(nodeGroupKind, undefined, name)
  }

  node(name: string): Node | undefined {
    return this.api.get(kinds.node, undefined, name)
  }

  /** Names of all nodes. */
  nodes(): readonly string[] {
    return this.api.list(kinds.node).map(({ metadata }) => metadata.name)
  }

  /** Phase, conditions that are true, and the reason of a failure. */
  brief(name: string): string {
    const group = this.group(name)
    if (group === undefined) return 'gone'
    const types = ['Ready', 'ReconcileInProgress', 'Terminating'].filter((type) =>
      isConditionTrue(group, type),
    )
    const failure = conditionOf(group, 'ReconcileFailed')
    const reasons = failure?.status === 'True' ? [failure.reason] : []
    return [group.status?.phase ?? 'no phase', ...types, ...reasons].join(' ')
  }

  async seconds(count: number): Promise<void> {
    await this.clock.advance(count * 1_000)
  }

  /** Advances until `isSo`; answers how many seconds it took. */
  async until(what: string, isSo: () => boolean, limitSeconds = 600): Promise<number> {
    const from = this.clock.now()
    assert.ok(
      await this.clock.advanceUntil(isSo, limitSeconds * 1_000),
      `not within ${limitSeconds} s: ${what}`,
    )
    return (this.clock.now() - from) / 1_000
  }

  stop(): void {
    this.cluster.stop()
  }
}
