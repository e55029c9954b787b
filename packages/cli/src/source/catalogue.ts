/** The catalogue of a cluster whose controller cannot be reached (ask.md 1). */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  type InstanceType,
  type KubeObject,
  kinds,
  type Node,
  type NodeClass,
  type NodePool,
  type ResourceType,
} from '@tenon/api'
import { type SnapshotCatalogue, type SnapshotCloud, typesOfNodes } from '@tenon/ask/snapshot'
import type { OfflineCatalogue, ProviderModule } from '@tenon/provider'
import { readText } from '@tenon/runtime'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { recognizedProvider } from '../load-provider.ts'
import { builtInProviders } from '../providers.ts'
import { snapshotFile } from './snapshot-file.ts'

/** A catalogue and its source. */
export interface KnownCatalogue {
  readonly cloud: SnapshotCloud
  readonly catalogues: readonly SnapshotCatalogue[]
  /** For people, such as `built-in list of My Cloud`. */
  readonly origin: string
}

/** Reads the best catalogue that is available without the controller. */
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
  if (file !== undefined) {
    const origin = resolve(io.cwd, file)
    const { cloud, catalogues } = await snapshotFile(io, origin)
    return { cloud, catalogues, origin }
  }
  if (module !== undefined) return await catalogueOfModule(io, module, connection, pools)
  return await catalogueOfNodes(io, connection, pools)
}

/** The catalogue that the provider knows without access to its cloud. */
async function catalogueOfModule(
  io: Io,
  module: ProviderModule,
  { client }: ClusterConnection,
  pools: readonly NodePool[],
): Promise<KnownCatalogue> {
  const offline = await offlineOf(io, module)
  const classes = new Map<string, NodeClass>()
  for (const type of module.nodeClasses)
    for (const nodeClass of await client.list<NodeClass>(type, { signal: io.interrupted }))
      classes.set(`${type.group}/${type.kind}/${nodeClass.metadata.name}`, nodeClass)
  const facts = offlineFacts(module, offline, pools, classes)
  return { ...facts, origin: originOf(module) }
}

/**
 * What a provider knows about NodePools without access to its cloud.
 * @param classes node classes by `GROUP/KIND/NAME`.
 */
export function offlineFacts(
  module: ProviderModule,
  offline: OfflineCatalogue,
  pools: readonly NodePool[],
  classes: ReadonlyMap<string, KubeObject>,
): { readonly cloud: SnapshotCloud; readonly catalogues: readonly SnapshotCatalogue[] } {
  const { wellKnownLabels, restrictedDomains, restrictedLabels, labelAliases } = offline.rules
  return {
    cloud: {
      name: module.name,
      nodeClasses: module.nodeClasses,
      wellKnownLabels,
      repairPolicies: [],
      ...(restrictedDomains && { restrictedDomains }),
      ...(restrictedLabels && { restrictedLabels }),
      ...(labelAliases && { labelAliases }),
      ...(offline.priceUnit !== undefined && { priceUnit: offline.priceUnit }),
    },
    catalogues: pools.map(({ metadata, spec }) => {
      const { group, kind, name } = spec.template.spec.nodeClassRef
      const { offered } = offline.typesOf(classes.get(`${group}/${kind}/${name}`), [...classes.values()])
      return { nodePools: [metadata.name], instanceTypes: offered }
    }),
  }
}

/** The types of the cluster's nodes, without prices; in a cluster without NodePools, what its cloud sells as well. */
async function catalogueOfNodes(
  io: Io,
  { client, config }: ClusterConnection,
  pools: readonly NodePool[],
): Promise<KnownCatalogue> {
  const nodes = await client.list(kinds.node)
  const module = pools.length === 0 ? await recognizedProvider(builtInProviders, nodes) : undefined
  if (module !== undefined) return await catalogueOfCloud(io, module, nodes)
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

/** For a cluster without NodePools. Types that the list of the cloud lacks are those of the nodes. */
async function catalogueOfCloud(
  io: Io,
  module: ProviderModule,
  nodes: readonly Node[],
): Promise<KnownCatalogue> {
  const offline = await offlineOf(io, module)
  const { offered } = offline.typesOf(undefined)
  const known = new Set(offered.map(({ name }) => name))
  const others = typesOfNodes(nodes).filter(({ name }) => !known.has(name))
  const { cloud } = offlineFacts(module, offline, [], new Map())
  return {
    cloud,
    catalogues: [{ nodePools: [], instanceTypes: [...offered, ...others] }],
    origin: originOf(module),
  }
}

const offlineOf = (io: Io, module: ProviderModule): Promise<OfflineCatalogue> =>
  module.offline(io.env, async (path) => await readFile(resolve(io.cwd, path), 'utf8'))
const originOf = ({ title }: ProviderModule): string => `what ${title} sells by its built-in list`

/** Discovers how the API server serves a kind of node class. */
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
