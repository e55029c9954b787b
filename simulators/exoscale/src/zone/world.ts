import { publicAddresses } from './address-pool.ts'
import { instanceTypes } from './catalogue.ts'
import type { CloudContext, CloudState, InstancePool, SksNodepool } from './cloud-state.ts'
import type { Template } from '../instances/instance.ts'
import { InstanceTable } from '../instances/instance-table.ts'
import type { InstanceLife } from '../instances/instance-life.ts'
import { addMembers } from '../instances/pool-members.ts'
import { stableId } from './stable-id.ts'

/** A named initial resource; by default its id is derived from the name. */
interface NamedSeed {
  readonly id?: string
  readonly name: string
  readonly description?: string
}

/** An initial private network; with an address range it assigns addresses. */
interface PrivateNetworkSeed extends NamedSeed {
  readonly range?: { readonly startIp: string; readonly endIp: string; readonly netmask: string }
}

/** A node image. The last one of a version and variant is the active one. */
export interface TemplateSeed {
  readonly id?: string
  /** Kubernetes version without `v`. */
  readonly version: string
  readonly variant: 'standard' | 'nvidia'
}

/** An initial instance pool; its members run from the start. */
interface InstancePoolSeed extends NamedSeed {
  /** Type such as `standard.medium`. */
  readonly type: string
  readonly size: number
  readonly diskSizeGib?: number
  /** Default `pool`. */
  readonly prefix?: string
  /** Members only join the cluster with this user data or with {@link joins}. */
  readonly userData?: string
  /** Members join by themselves, with labels and taints of the nodepool, as SKS writes their user data. */
  readonly joins?: true
  readonly securityGroupIds?: readonly string[]
  readonly antiAffinityGroupIds?: readonly string[]
}

/**
 * An initial SKS nodepool. The API shows its labels and taints; nodes have them with {@link InstancePoolSeed.joins}.
 */
export interface NodepoolSeed extends InstancePoolSeed {
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: SksNodepool['taints']
}

/** Resources in addition to the default ones. A resource with an existing id replaces the old one. */
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
  readonly nowMs: number
}

/** Minor versions of Kubernetes with templates, and their patch versions. */
const minorVersions = [32, 33, 34, 35, 36]
const patchVersions = 10

const defaultSecurityGroup: NamedSeed = { name: 'default', description: 'Default Security Group' }
const defaultAntiAffinityGroup: NamedSeed = { name: 'sks-nodes', description: 'Spreads nodes over hosts' }
const defaultPrivateNetwork: PrivateNetworkSeed = {
  name: 'sks-private',
  range: { startIp: '10.42.0.10', endIp: '10.42.255.250', netmask: '255.255.0.0' },
}

/** The default resources: templates, one group and network of each kind, the SKS cluster. */
export function createWorld(options: WorldOptions): CloudState {
  const { nowMs, zone } = options
  const defaultGroup = named('security-group', defaultSecurityGroup)
  const version = (options.clusterVersion ?? '1.34.1').replace(/^v/, '')
  const state: CloudState = {
    zone,
    baseUrl: `https://api-${zone}.exoscale.test/v2`,
    instances: new InstanceTable(),
    publicAddresses: publicAddresses(),
    templates: new Map(),
    activeTemplates: new Map(),
    securityGroups: new Map([[defaultGroup.id, defaultGroup]]),
    antiAffinityGroups: new Map(),
    privateNetworks: new Map(),
    instancePools: new Map(),
    sshKeys: new Map(),
    cluster: {
      id: options.clusterId ?? stableId('sks-cluster/tenon'),
      name: 'tenon',
      version,
      endpoint: options.clusterEndpoint,
      defaultSecurityGroupId: defaultGroup.id,
      createdAtMs: nowMs,
      nodepools: [],
    },
  }
  for (const template of templatesOf(version)) publishTemplate(state, template, nowMs)
  addGroupsAndNetworks(state, {
    antiAffinityGroups: [defaultAntiAffinityGroup],
    privateNetworks: [defaultPrivateNetwork],
  })
  return state
}

/** Creates the new active template of its version and variant; returns its id. */
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

/** Creates the resources of a seed, without checking quotas. */
export function plant(context: CloudContext, life: InstanceLife, seed: ExoscaleSeed): void {
  addGroupsAndNetworks(context.state, seed)
  for (const template of seed.templates ?? []) publishTemplate(context.state, template, context.clock.now())
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
  const variant = (type?.gpus ?? 0) > 0 ? 'nvidia' : 'standard'
  const template = state.templates.get(state.activeTemplates.get(`${state.cluster.version}/${variant}`) ?? '')
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
    joins: seed.joins ?? false,
    securityGroupIds: seed.securityGroupIds ?? [],
    antiAffinityGroupIds: seed.antiAffinityGroupIds ?? [],
    nodepoolId,
  }
  state.instancePools.set(pool.id, pool)
  // Members of an earlier run exist already.
  const members = state.instances.inPool(pool.id).length
  addMembers(context, life, pool, Math.max(0, seed.size - members), [])
  pool.size = state.instances.inPool(pool.id).length
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

function addGroupsAndNetworks(state: CloudState, seed: ExoscaleSeed): void {
  for (const each of seed.securityGroups ?? []) {
    const group = named('security-group', each)
    state.securityGroups.set(group.id, group)
  }
  for (const each of seed.antiAffinityGroups ?? []) {
    const group = named('anti-affinity-group', each)
    state.antiAffinityGroups.set(group.id, group)
  }
  for (const each of seed.privateNetworks ?? []) {
    const vni = 4_000 + state.privateNetworks.size
    const network = { ...named('private-network', each), vni, range: each.range }
    state.privateNetworks.set(network.id, network)
  }
}

function named(kind: string, { id, name, description = '' }: NamedSeed) {
  return { id: id ?? stableId(`${kind}/${name}`), name, description }
}
