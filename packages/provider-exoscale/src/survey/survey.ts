/** SKS nodepools and Instance Pools whose members are nodes of the cluster, for `tenon init`. */
import type { Node } from '@tenon/api'
import {
  isProviderSettingError,
  type ProviderEnvironment,
  type Survey,
  type SurveyDependencies,
  type SurveyModule,
} from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { ExoscaleClient } from '../api/client.ts'
import { HttpsTransport } from '../api/https-transport.ts'
import type { InstancePool, SksCluster } from '../api/types.ts'
import { exoscaleLabels, parseProviderId } from '../identifiers.ts'
import { readNodeGroupSettings } from '../api/node-group-settings.ts'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { nodeClassSpecOf, nodepoolGroup, poolGroup } from './groups.ts'

/** A user waits. */
const patience = { maxAttempts: 2, attemptTimeoutMs: 15_000 } as const

/** @param connect opens a transport to an endpoint. */
export function surveyModuleOver(
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
): SurveyModule {
  return {
    recognizes: ({ spec }) => (parseProviderId(spec?.providerID).kind === 'instance' ? 'instance' : 'none'),
    nodeClass: exoscaleNodeClassKind,
    nodeClassSpecOf,
    firstRequirements: [
      { key: exoscaleLabels.family, operator: 'In', values: ['standard', 'cpu', 'memory'] },
      { key: exoscaleLabels.size, operator: 'NotIn', values: ['micro', 'tiny'] },
    ],
    survey: async (dependencies, signal) => {
      try {
        return await read(dependencies, connect, signal)
      } catch (error) {
        signal.throwIfAborted()
        const why = error instanceof Error ? error.message : String(error)
        const fix = isProviderSettingError(error)
          ? ''
          : '; the key needs the operations list-sks-clusters, list-instance-pools and list-instance-types'
        return {
          groups: [],
          remarks: [`Nodepools and Instance Pools could not be read: ${why}${fix}.`],
        }
      }
    },
  }
}

async function read(
  { env, nodes, clock, userAgent }: SurveyDependencies,
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
  signal: AbortSignal,
): Promise<Survey> {
  const { apiKey: key, apiSecret: secret, endpoint } = readNodeGroupSettings(env)
  const client = new ExoscaleClient({
    transport: connect(endpoint, env),
    basePath: new URL(endpoint).pathname.replace(/\/+$/, ''),
    credentials: { key, secret },
    clock,
    userAgent,
    ...patience,
  })
  const [clusters, pools, types] = await Promise.all([
    client.listSksClusters(signal),
    client.listInstancePools(signal),
    client.listInstanceTypes(signal),
  ])
  const members = membersIn(nodes)
  const isOfCluster = (pool: InstancePool) => (pool.instances ?? []).some(({ id }) => members.has(id))
  const cluster = clusterOf(clusters, pools.filter(isOfCluster), env['EXOSCALE_SKS_CLUSTER_ID'])
  const nodepools = (cluster?.nodepools ?? []).map((nodepool) => nodepoolGroup(nodepool, types))
  const others = pools
    .filter((pool) => pool.manager?.type !== 'sks-nodepool' && isOfCluster(pool))
    .map((pool) => poolGroup(pool, types))
  return { groups: [...nodepools, ...others].flatMap((group) => group ?? []), remarks: [] }
}

function membersIn(nodes: readonly Node[]): ReadonlySet<string> {
  const parsed = nodes.map(({ spec }) => parseProviderId(spec?.providerID))
  return new Set(parsed.flatMap((each) => (each.kind === 'instance' ? [each.instanceId] : [])))
}

/** The configured cluster, or that of a node, or else the only one. */
function clusterOf(
  clusters: readonly SksCluster[],
  pools: readonly InstancePool[],
  named: string | undefined,
): SksCluster | undefined {
  const inUse = new Set(pools.map(({ id }) => id))
  return (
    clusters.find(({ id }) => id === named) ??
    clusters.find(({ nodepools = [] }) =>
      nodepools.some((each) => inUse.has(each['instance-pool']?.id ?? '')),
    ) ??
    (clusters.length === 1 ? clusters[0] : undefined)
  )
}

export const surveyModule: SurveyModule = surveyModuleOver(
  (endpoint, env) => new HttpsTransport(endpoint, env),
)
