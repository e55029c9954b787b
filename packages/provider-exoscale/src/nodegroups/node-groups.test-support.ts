/** Node groups on a simulated zone, on virtual time, with a key that may call just what is documented. */
import type { Node, Taint } from '@tenon/api'
import type { NodeGroups } from '@tenon/provider'
import { JsonLogger, Secret, type Transport } from '@tenon/runtime'
import type { ExoscaleSeed, ExoscaleSettings, NodepoolSeed } from '@tenon/simulator-exoscale'
import { ExoscaleFixture } from '@tenon/simulator-exoscale/fixture'
import { ExoscaleClient } from '../api/client.ts'
import { NodeGroupApi } from './call-api.ts'
import { ExoscaleNodeGroups } from './node-groups.ts'

export const nodepoolId = 'b0020000-0000-4000-8000-000000000002'
export const batchPoolId = 'b0010000-0000-4000-8000-000000000001'

/** What the documents of Cluster Autoscaler ask of the IAM role (cluster-autoscaler.md 1.2). */
const common = ['get-instance', 'get-instance-pool', 'get-operation', 'get-quota']
export const sksRole: readonly string[] = [
  ...common,
  'evict-sks-nodepool-members',
  'list-sks-clusters',
  'scale-sks-nodepool',
]
export const unmanagedRole: readonly string[] = [
  ...common,
  'evict-instance-pool-members',
  'scale-instance-pool',
]

export const scalerKey = { key: 'EXOscaler', secret: new Secret('s3cret-value') }

export interface StageOptions {
  /** `--allow-scale-to-zero`. */
  readonly allowsEmptyGroups?: boolean
  readonly specs?: readonly string[]
  readonly operations?: readonly string[]
  readonly workers?: Partial<NodepoolSeed>
  readonly seed?: ExoscaleSeed
  readonly settings?: Partial<ExoscaleSettings>
  /** Puts something between client and cloud. */
  readonly between?: (transport: Transport) => Transport
}

export interface Stage {
  readonly world: ExoscaleFixture
  readonly groups: NodeGroups
  readonly signal: AbortSignal
  readonly log: readonly string[]
  /** Instance Pool of the nodepool `workers`. */
  readonly workersId: string
  /** Ids of the members of a pool. */
  readonly members: (poolId: string) => readonly string[]
  /** A node of each member. */
  readonly nodesOf: (poolId: string) => readonly Node[]
  /** Finds the groups of all pools of the zone. */
  readonly discover: () => Promise<void>
  /** Operations called since the last question, in their order. */
  readonly called: () => readonly string[]
  /** Runs until the promise settles, moving time as far as it takes. */
  readonly settle: <T>(work: Promise<T>) => Promise<T>
  /** Another process on the same cloud. */
  readonly restarted: () => NodeGroups
}

export function aStage(options: StageOptions = {}): Stage {
  const { specs = [], allowsEmptyGroups = false, operations, workers = {}, seed, settings } = options
  const world = new ExoscaleFixture({
    ...(settings && { settings }),
    credentials: [{ ...scalerKey, ...(operations && { operations }) }],
    seed: seed ?? {
      instancePools: [{ id: batchPoolId, name: 'batch', type: 'standard.small', size: 2, prefix: 'batch' }],
      nodepools: [{ id: nodepoolId, name: 'workers', type: 'standard.medium', size: 2, ...workers }],
    },
  })
  const { cloud, clock } = world
  const signal = new AbortController().signal
  const log: string[] = []
  const transport: Transport = { send: (request) => cloud.handle(request) }
  const open = () => {
    const client = new ExoscaleClient({
      transport: options.between?.(transport) ?? transport,
      basePath: '/v2',
      credentials: scalerKey,
      clock,
      userAgent: 'test',
      maxAttempts: 3,
    })
    return new ExoscaleNodeGroups({
      api: new NodeGroupApi(client),
      zone: 'ch-gva-2',
      nodeGroupSpecs: specs,
      allowsEmptyGroups,
      clock,
      logger: new JsonLogger(clock, (line) => log.push(line), { value: 'debug' }),
    })
  }
  const groups = open()
  const members = (poolId: string) =>
    cloud.instances().flatMap(({ id, instancePoolId }) => (instancePoolId === poolId ? [id] : []))
  const nodesOf = (poolId: string) => members(poolId).map((id) => aNode(`node-${id}`, `exoscale://${id}`))
  const pools = () => new Set(cloud.instances().flatMap(({ instancePoolId }) => instancePoolId ?? []))
  let seen = 0
  return {
    world,
    groups,
    signal,
    log,
    get workersId() {
      return [...pools()].find((id) => id !== batchPoolId) ?? ''
    },
    members,
    nodesOf,
    discover: async () => {
      for (const id of pools()) for (const node of nodesOf(id)) await groups.groupOf(node, signal)
      seen = cloud.calls().length
    },
    called: () => {
      const calls = cloud.calls().slice(seen)
      seen = cloud.calls().length
      return calls.map(({ operation }) => operation)
    },
    settle: async (work) => {
      let isDone = false
      const watched = work.finally(() => {
        isDone = true
      })
      watched.catch(() => undefined)
      await clock.advanceUntil(() => isDone, 24 * 3_600_000)
      return await watched
    },
    restarted: open,
  }
}

export function aNode(name: string, providerID?: string, ...taintKeys: string[]): Node {
  const taints: Taint[] = taintKeys.map((key) => ({ key, effect: 'NoSchedule' }))
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { ...(providerID === undefined ? {} : { providerID }), taints },
  }
}
