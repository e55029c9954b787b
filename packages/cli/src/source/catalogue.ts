/** Facts from the objects of a cluster, without its controller (ask.md 1). */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  apiVersionOf,
  type InstanceType,
  karpenterKinds,
  kinds,
  type NodeClass,
  type NodePool,
  type ResourceType,
} from '@tenon/api'
import {
  CatalogueProvider,
  readSnapshot,
  type Snapshot,
  type SnapshotCatalogue,
  type SnapshotCloud,
  takeSnapshot,
  typesOfNodes,
} from '@tenon/ask'
import { createCacheRegistry } from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator } from '@tenon/operator'
import type { ProviderModule } from '@tenon/provider'
import { eventLoopTurns, readText, silentLogger, SystemRandom } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { offlineFacts } from './offline-facts.ts'
import { builtInProviders } from '../providers.ts'
import { version } from '../version.ts'

/** A list that takes longer will not come. */
const listsMs = 60_000

/** What is for sale, and how that is known. */
export interface KnownCatalogue {
  readonly cloud: SnapshotCloud
  readonly catalogues: readonly SnapshotCatalogue[]
  /** For people, such as `built-in list of My Cloud`. */
  readonly origin: string
}

/** @throws CliError when a kind that decisions read cannot be listed. */
export async function snapshotOfObjects(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<Snapshot> {
  const { client, clock, config } = connection
  const pools = await client.list<NodePool>(karpenterKinds.nodePool, { signal: io.interrupted })
  const { cloud, catalogues, origin } = await knownCatalogue(io, flags, connection, pools)
  const provider = new CatalogueProvider({ cloud, catalogues, objects: pools.map(withKind) })
  const random = new SystemRandom()
  const logger = silentLogger
  const operator = new Operator({
    kubernetes: {
      client,
      registry: createCacheRegistry({ client, clock, logger, random }),
      events: { record: () => undefined },
    },
    provider,
    runtime: { clock, random, logger },
    decider: new InlineDecider(clock),
    settings: { ...defaultSettings, clusterStateObservability: false },
  })
  const signal = AbortSignal.any([io.interrupted, AbortSignal.timeout(listsMs)])
  try {
    await operator.observe(signal).catch((cause: unknown) => {
      io.interrupted.throwIfAborted()
      throw new CliError(
        `these objects could not be listed: ${operator.waitingFor.join(', ')}; grant the right to list and watch them`,
        { cause },
      )
    })
    await operator.followGroups(signal)
    return await takeSnapshot(
      {
        operator,
        provider,
        origin: { kind: 'objects', server: config.server, catalogue: origin },
        program: `tenon ${version}`,
        clock,
        slicing: { clock, turns: eventLoopTurns, sliceMs: 50 },
      },
      io.interrupted,
    )
  } finally {
    await operator.stop()
  }
}

function withKind(pool: NodePool): NodePool {
  return { ...pool, apiVersion: apiVersionOf(karpenterKinds.nodePool), kind: karpenterKinds.nodePool.kind }
}

/** What is for sale, as far as that is known without the controller. */
export async function knownCatalogue(
  io: Io,
  { catalogue: file }: SourceFlags,
  connection: ClusterConnection,
  pools: readonly NodePool[],
): Promise<KnownCatalogue> {
  const refs = pools.map(({ spec }) => spec.template.spec.nodeClassRef)
  const module = builtInProviders.find(({ nodeClasses }) =>
    nodeClasses.some(({ group, kind }) => refs.some((ref) => ref.group === group && ref.kind === kind)),
  )
  if (file !== undefined) return await catalogueOfFile(resolve(io.cwd, file))
  if (module !== undefined) return await catalogueOfModule(io, module, connection, pools)
  return await catalogueOfNodes(connection, pools)
}

/** The catalogue of a snapshot. */
async function catalogueOfFile(path: string): Promise<KnownCatalogue> {
  const read = await readSnapshot(path).catch((cause: unknown) => {
    throw new CliError(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  })
  if ('problem' in read) throw new CliError(`${path}:${read.problem.line}: ${read.problem.message}`)
  const { cloud, catalogues } = read.ok
  return { cloud, catalogues, origin: path }
}

/** What the provider knows without its cloud. */
async function catalogueOfModule(
  io: Io,
  module: ProviderModule,
  { client }: ClusterConnection,
  pools: readonly NodePool[],
): Promise<KnownCatalogue> {
  const offline = await module.offline(io.env, async (path) => await readFile(resolve(io.cwd, path), 'utf8'))
  const classes = new Map<string, NodeClass>()
  for (const type of module.nodeClasses)
    for (const nodeClass of await client.list<NodeClass>(type, { signal: io.interrupted }))
      classes.set(`${type.group}/${type.kind}/${nodeClass.metadata.name}`, nodeClass)
  const facts = offlineFacts(module, offline, pools, classes)
  return { ...facts, origin: `what ${module.title} sells by its built-in list` }
}

/** What the nodes of the cluster are, without prices. */
async function catalogueOfNodes(
  { client, config }: ClusterConnection,
  pools: readonly NodePool[],
): Promise<KnownCatalogue> {
  const nodes = await client.list(kinds.node)
  const instanceTypes: readonly InstanceType[] = typesOfNodes(nodes)
  const refs = new Map(
    pools.map(({ spec }) => {
      const { group, kind } = spec.template.spec.nodeClassRef
      return [`${group}/${kind}`, { group, kind }]
    }),
  )
  const nodeClasses: ResourceType<NodeClass>[] = []
  for (const { group, kind } of refs.values()) {
    const found = await discovered(config, group, kind)
    if (found !== undefined) nodeClasses.push(found)
  }
  return {
    cloud: { name: 'unknown', nodeClasses, wellKnownLabels: [], repairPolicies: [] },
    catalogues: [{ nodePools: pools.map(({ metadata }) => metadata.name), instanceTypes }],
    origin: 'those of the nodes that exist, without prices; give --catalogue for others',
  }
}

/** How the API server serves a kind of node class. */
async function discovered(
  { transport }: ClusterConnection['config'],
  group: string,
  kind: string,
): Promise<ResourceType<NodeClass> | undefined> {
  const get = async (path: string): Promise<unknown> => {
    const { status, body } = await transport.send({
      method: 'GET',
      path,
      headers: { accept: 'application/json' },
    })
    const text = await readText(body)
    return status === 200 ? JSON.parse(text) : undefined
  }
  const groups = (await get(`/apis/${group}`)) as { preferredVersion?: { version?: string } } | undefined
  const preferred = groups?.preferredVersion?.version
  if (preferred === undefined) return undefined
  const list = (await get(`/apis/${group}/${preferred}`)) as
    | { resources?: readonly { name?: string; kind?: string; namespaced?: boolean }[] }
    | undefined
  const served = list?.resources?.find((each) => each.kind === kind && each.name?.includes('/') === false)
  if (served?.name === undefined) return undefined
  return { group, version: preferred, kind, plural: served.name, namespaced: served.namespaced === true }
}
