import { publicAddresses } from './address-pool.ts'
import { instanceTypes } from './catalogue.ts'
import type { CloudState, InstancePool, SksNodepool, Template } from './cloud-state.ts'
import { InstanceTable } from './instance-table.ts'
import type { InstanceLife } from './instance-life.ts'
import type { CloudContext } from './cloud-state.ts'
import { addMembers } from './pool-members.ts'
import { stableId } from './stable-id.ts'

/** A named resource to begin with; its id is derived from the name unless given. */
export interface NamedSeed {
  readonly id?: string
  readonly name: string
  readonly description?: string
}

/** A private network to begin with; with an address range it hands out leases. */
export interface PrivateNetworkSeed extends NamedSeed {
  readonly range?: { readonly startIp: string; readonly endIp: string; readonly netmask: string }
}

/** An image for nodes. Of one version and variant, the last one published is the active one. */
export interface TemplateSeed {
  readonly id?: string
  /** Kubernetes version without `v`. */
  readonly version: string
  readonly variant: 'standard' | 'nvidia'
}

/** An instance pool to begin with; its members run from the start. */
export interface InstancePoolSeed extends NamedSeed {
  /** Type such as `standard.medium`. */
  readonly type: string
  readonly size: number
  readonly diskSizeGib?: number
  /** Default `pool`. */
  readonly prefix?: string
  /** Members join the cluster only if this says how; without it they just run. */
  readonly userData?: string
  readonly securityGroupIds?: readonly string[]
  readonly antiAffinityGroupIds?: readonly string[]
}

/** An SKS nodepool to begin with. Its labels and taints are shown by the API; only user data sets them. */
export interface NodepoolSeed extends InstancePoolSeed {
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: SksNodepool['taints']
}

/** What exists besides the default world. */
export interface ExoscaleSeed {
  readonly securityGroups?: readonly NamedSeed[]
  readonly antiAffinityGroups?: readonly NamedSeed[]
  readonly privateNetworks?: readonly PrivateNetworkSeed[]
  readonly templates?: readonly TemplateSeed[]
  readonly instancePools?: readonly InstancePoolSeed[]
  readonly nodepools?: readonly NodepoolSeed[]
}

export interface WorldOptions {
  readonly zone: string
  readonly clusterId: string | undefined
  readonly clusterVersion: string | undefined
  readonly clusterEndpoint: string | undefined
  readonly seed: ExoscaleSeed
  readonly nowMs: number
}

/** Minor versions of Kubernetes for which there are templates, and their patch versions. */
const minorVersions = [32, 33, 34, 35, 36]
const patchVersions = 10

const defaultSecurityGroup: NamedSeed = { name: 'default', description: 'Default Security Group' }
const defaultAntiAffinityGroup: NamedSeed = { name: 'sks-nodes', description: 'Spreads nodes over hosts' }
const defaultPrivateNetwork: PrivateNetworkSeed = {
  name: 'sks-private',
  range: { startIp: '10.42.0.10', endIp: '10.42.255.250', netmask: '255.255.0.0' },
}

/** The world at the start: templates, one group and network of each kind, the SKS cluster, the seeds. */
export function createWorld(options: WorldOptions): CloudState {
  const { seed, nowMs, zone } = options
  const securityGroups = named('security-group', [defaultSecurityGroup, ...(seed.securityGroups ?? [])])
  const antiAffinityGroups = [defaultAntiAffinityGroup, ...(seed.antiAffinityGroups ?? [])]
  const privateNetworks = [defaultPrivateNetwork, ...(seed.privateNetworks ?? [])].map(networkOf)
  const [defaultGroup] = securityGroups
  const version = (options.clusterVersion ?? '1.34.1').replace(/^v/, '')
  const state: CloudState = {
    zone,
    baseUrl: `https://api-${zone}.exoscale.com/v2`,
    instances: new InstanceTable(),
    publicAddresses: publicAddresses(),
    templates: new Map(),
    activeTemplates: new Map(),
    securityGroups: byId(securityGroups),
    antiAffinityGroups: byId(named('anti-affinity-group', antiAffinityGroups)),
    privateNetworks: byId(privateNetworks),
    instancePools: new Map(),
    cluster: {
      id: options.clusterId ?? stableId('sks-cluster/tenon'),
      name: 'tenon',
      version,
      endpoint: options.clusterEndpoint,
      defaultSecurityGroupId: defaultGroup?.id ?? '',
      createdAtMs: nowMs,
      nodepools: [],
    },
  }
  for (const template of templatesOf(version)) publishTemplate(state, template, nowMs)
  for (const template of seed.templates ?? []) publishTemplate(state, template, nowMs)
  return state
}

/** Makes a template that new nodes of its version and variant get from now on; answers its id. */
export function publishTemplate(state: CloudState, seed: TemplateSeed, nowMs: number): string {
  const { version, variant } = seed
  const key = `${version}/${variant}`
  const builds = [...state.templates.values()].filter(
    (known) => known.version === version && known.variant === variant,
  ).length
  const template: Template = {
    id: seed.id ?? stableId(`template/${key}/${builds}`),
    name: `sks-node-${version}-${variant}${builds === 0 ? '' : `-${builds}`}`,
    version,
    variant,
    createdAtMs: nowMs,
  }
  state.templates.set(template.id, template)
  state.activeTemplates.set(key, template.id)
  return template.id
}

/** Starts the instance pools and nodepools of a seed; quotas and capacity are not asked. */
export function startPools(context: CloudContext, life: InstanceLife, seed: ExoscaleSeed): void {
  for (const pool of seed.instancePools ?? []) startPool(context, life, pool, undefined)
  for (const nodepool of seed.nodepools ?? []) {
    const id = nodepool.id ?? stableId(`nodepool/${nodepool.name}`)
    const poolId = startPool(context, life, { ...nodepool, id: stableId(`instance-pool/${id}`) }, id)
    context.state.cluster.nodepools.push({
      id,
      name: nodepool.name,
      description: nodepool.description ?? '',
      instancePoolId: poolId,
      labels: nodepool.labels ?? {},
      taints: nodepool.taints ?? {},
      createdAtMs: context.clock.now(),
    })
  }
}

function startPool(
  context: CloudContext,
  life: InstanceLife,
  seed: InstancePoolSeed,
  nodepoolId: string | undefined,
): string {
  const { state } = context
  const type = instanceTypes.find((known) => known.name === seed.type)
  const template = state.templates.get(state.activeTemplates.get(`${state.cluster.version}/standard`) ?? '')
  if (type === undefined) throw new Error(`instance pool ${seed.name}: unknown instance type ${seed.type}`)
  if (template === undefined) throw new Error(`no template for Kubernetes ${state.cluster.version}`)
  const pool: InstancePool = {
    id: seed.id ?? stableId(`instance-pool/${seed.name}`),
    name: seed.name,
    state: 'running',
    size: seed.size,
    type,
    template,
    diskSizeGib: seed.diskSizeGib ?? 50,
    instancePrefix: seed.prefix ?? 'pool',
    minAvailable: 0,
    userData: seed.userData,
    securityGroupIds: seed.securityGroupIds ?? [],
    antiAffinityGroupIds: seed.antiAffinityGroupIds ?? [],
    nodepoolId,
  }
  state.instancePools.set(pool.id, pool)
  addMembers(context, life, pool, seed.size, [])
  return pool.id
}

function templatesOf(clusterVersion: string): TemplateSeed[] {
  const versions = new Set([clusterVersion])
  for (const minor of minorVersions) {
    for (let patch = 0; patch < patchVersions; patch++) versions.add(`1.${minor}.${patch}`)
  }
  return [...versions].flatMap((version) => [
    { version, variant: 'standard' as const },
    { version, variant: 'nvidia' as const },
  ])
}

function networkOf(seed: PrivateNetworkSeed, index: number) {
  return {
    id: seed.id ?? stableId(`private-network/${seed.name}`),
    name: seed.name,
    description: seed.description ?? '',
    vni: 4_000 + index,
    range: seed.range,
  }
}

function named(kind: string, seeds: readonly NamedSeed[]) {
  return seeds.map(({ id, name, description = '' }) => ({
    id: id ?? stableId(`${kind}/${name}`),
    name,
    description,
  }))
}

function byId<T extends { readonly id: string }>(items: readonly T[]): Map<string, T> {
  return new Map(items.map((item) => [item.id, item]))
}
