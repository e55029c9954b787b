import { rfc3339 } from '@tenon/runtime'
import type { Call, Route } from './call.ts'
import type { ClusterInfo } from '../zone/cluster-info.ts'
import type { CloudState, InstancePool, SksNodepool } from '../zone/cloud-state.ts'
import { nodeClassManifest, nodePoolManifest } from '../zone/manifests.ts'
import { evictMembers, scalePool } from './pool-routes.ts'
import { invalid, notFound } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'

const authorities: ReadonlySet<string> = new Set(['control-plane', 'aggregation', 'kubelet'])

/** The SKS cluster, its nodepools, certificates and generated manifests. */
export function sksRoutes(parts: RouteParts, info: () => ClusterInfo): Route[] {
  const { state } = parts.context
  return [
    {
      operation: 'list-sks-clusters',
      method: 'GET',
      path: '/sks-cluster',
      handle: () => ({ 'sks-clusters': [clusterView(state, info())] }),
    },
    {
      operation: 'get-sks-cluster',
      method: 'GET',
      path: '/sks-cluster/{id}',
      handle: (call) => {
        demandCluster(state, call)
        return clusterView(state, info())
      },
    },
    {
      operation: 'get-sks-nodepool',
      method: 'GET',
      path: '/sks-cluster/{id}/nodepool/{sks-nodepool-id}',
      handle: (call) => {
        const { nodepool, pool } = nodepoolOf(state, call)
        return nodepoolView(state, nodepool, pool)
      },
    },
    {
      operation: 'scale-sks-nodepool',
      method: 'PUT',
      path: '/sks-cluster/{id}/nodepool/{sks-nodepool-id}:scale',
      body: 'required',
      handle: (call) => {
        const { nodepool, pool } = nodepoolOf(state, call)
        return scalePool(parts, call, pool, referenceOf(state, nodepool))
      },
    },
    {
      operation: 'evict-sks-nodepool-members',
      method: 'PUT',
      path: '/sks-cluster/{id}/nodepool/{sks-nodepool-id}:evict',
      body: 'required',
      handle: (call) => {
        const { nodepool, pool } = nodepoolOf(state, call)
        return evictMembers(parts, call, pool, referenceOf(state, nodepool))
      },
    },
    {
      operation: 'get-sks-cluster-authority-cert',
      method: 'GET',
      path: '/sks-cluster/{id}/authority/{authority}/cert',
      handle: (call) => authorityCertificate(state, info(), call),
    },
    {
      operation: 'generate-sks-karpenter-nodepool',
      method: 'PUT',
      path: '/sks-cluster/{id}/generate-karpenter-nodepool',
      handle: (call) => {
        demandCluster(state, call)
        return { nodepool: nodePoolManifest() }
      },
    },
    {
      operation: 'generate-sks-karpenter-exoscale-nodeclass',
      method: 'PUT',
      path: '/sks-cluster/{id}/generate-karpenter-exoscale-nodeclass',
      handle: (call) => {
        demandCluster(state, call)
        return { 'exoscale-nodeclass': nodeClassManifest(state.cluster) }
      },
    },
  ]
}

function demandCluster(state: CloudState, call: Call): void {
  const id = call.parameters['id'] ?? ''
  if (id !== state.cluster.id) throw notFound('sks-cluster', id)
}

function nodepoolOf(state: CloudState, call: Call): { nodepool: SksNodepool; pool: InstancePool } {
  demandCluster(state, call)
  const id = call.parameters['sks-nodepool-id'] ?? ''
  const nodepool = state.cluster.nodepools.find((known) => known.id === id)
  const pool = nodepool && state.instancePools.get(nodepool.instancePoolId)
  if (nodepool === undefined || pool === undefined) throw notFound('sks-nodepool', id)
  return { nodepool, pool }
}

function referenceOf({ cluster }: CloudState, { id }: SksNodepool) {
  return { id, command: 'get-sks-nodepool', path: `/sks-cluster/${cluster.id}/nodepool/${id}` }
}

function clusterView(state: CloudState, info: ClusterInfo) {
  const { cluster } = state
  return {
    id: cluster.id,
    name: cluster.name,
    description: '',
    state: 'running',
    version: cluster.version,
    endpoint: cluster.endpoint ?? info.endpoint ?? '',
    level: 'pro',
    cni: 'calico',
    addons: ['exoscale-cloud-controller', 'karpenter'],
    'auto-upgrade': false,
    'enable-kube-proxy': true,
    'default-security-group-id': cluster.defaultSecurityGroupId,
    'created-at': rfc3339(cluster.createdAtMs),
    labels: {},
    nodepools: cluster.nodepools.flatMap((nodepool) => {
      const pool = state.instancePools.get(nodepool.instancePoolId)
      return pool === undefined ? [] : [nodepoolView(state, nodepool, pool)]
    }),
  }
}

function nodepoolView({ cluster }: CloudState, nodepool: SksNodepool, pool: InstancePool) {
  return {
    id: nodepool.id,
    name: nodepool.name,
    description: nodepool.description,
    state: pool.state === 'running' ? 'running' : 'scaling',
    size: pool.size,
    version: cluster.version,
    'instance-pool': { id: pool.id },
    'instance-type': { id: pool.type.id },
    template: { id: pool.template.id },
    'disk-size': pool.diskSizeGib,
    'instance-prefix': pool.instancePrefix,
    'public-ip-assignment': 'inet4',
    labels: nodepool.labels,
    taints: nodepool.taints,
    'security-groups': pool.securityGroupIds.map((id) => ({ id })),
    'anti-affinity-groups': pool.antiAffinityGroupIds.map((id) => ({ id })),
    'private-networks': [],
    'kubelet-image-gc': { 'high-threshold': 85, 'low-threshold': 80, 'min-age': '2m' },
    addons: [],
    'created-at': rfc3339(nodepool.createdAtMs),
  }
}

/**
 * The embedded cluster has one certificate authority, which stands for all three. Returned as base64 of its PEM.
 */
function authorityCertificate(state: CloudState, info: ClusterInfo, call: Call) {
  demandCluster(state, call)
  if (!authorities.has(call.parameters['authority'] ?? '')) {
    throw invalid(['authority must be one of control-plane, aggregation, kubelet'])
  }
  if (info.certificateAuthority === undefined) throw notFound('authority certificate of', state.cluster.id)
  return { cacert: Buffer.from(info.certificateAuthority).toString('base64') }
}
