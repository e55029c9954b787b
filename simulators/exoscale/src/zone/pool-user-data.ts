/** User data with which members of a pool join the cluster, as SKS writes it for its nodepools. */
import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { type Random, randomString } from '@tenon/runtime'
import type { Instance } from '../instances/instance.ts'
import { clusterInfo } from './cluster-info.ts'
import type { CloudState, SksNodepool } from './cloud-state.ts'

const hex = '0123456789abcdef'
const token = { namespace: 'kube-system', name: 'bootstrap-token-skspls', id: 'skspls' } as const
/** Label of every node of a nodepool. */
const nodepoolLabel = 'node.exoscale.net/nodepool-id'

/**
 * User data of a pool member. Created when it boots, as the endpoint of the cluster is only known then. Undefined for
 * an instance without any.
 */
export function poolUserData(
  state: CloudState,
  api: LocalApi,
  random: Random,
): (instance: Instance) => string | undefined {
  return ({ instancePoolId = '' }) => {
    const pool = state.instancePools.get(instancePoolId)
    if (pool?.joins !== true) return undefined
    const nodepool = state.cluster.nodepools.find(({ id }) => id === pool.nodepoolId)
    return document(state, api, tokenOf(api, random), nodepool)
  }
}

function document(
  { cluster }: CloudState,
  api: LocalApi,
  bootstrapToken: string,
  nodepool: SksNodepool | undefined,
): string {
  const { endpoint = '', certificateAuthority = '' } = clusterInfo(api)
  const labels = nodepool === undefined ? {} : { ...nodepool.labels, [nodepoolLabel]: nodepool.id }
  const taints = Object.entries(nodepool?.taints ?? {}).map(
    ([key, { value, effect }]) => [key, [`${value}:${effect}`]] as const,
  )
  return [
    '[settings.kubernetes]',
    ...lines({
      'api-server': cluster.endpoint ?? endpoint,
      'bootstrap-token': bootstrapToken,
      'cloud-provider': 'external',
      'cluster-certificate': Buffer.from(certificateAuthority).toString('base64'),
    }),
    '[settings.kubernetes.node-labels]',
    ...lines(labels),
    '[settings.kubernetes.node-taints]',
    ...lines(Object.fromEntries(taints)),
  ].join('\n')
}

/** TOML writes texts and lists of texts like JSON. */
function lines(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).map(([key, value]) => `${JSON.stringify(key)} = ${JSON.stringify(value)}`)
}

/** The token of the pools, created on first use. */
function tokenOf(api: LocalApi, random: Random): string {
  const { namespace, name, id } = token
  const known = api.get(kinds.secret, namespace, name)?.data?.['token-secret']
  if (known !== undefined) return `${id}.${Buffer.from(known, 'base64').toString()}`
  const secret = randomString(random, 16, hex)
  const data = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    'auth-extra-groups': 'system:bootstrappers:worker',
  }
  api.create(kinds.secret, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  })
  return `${id}.${secret}`
}
