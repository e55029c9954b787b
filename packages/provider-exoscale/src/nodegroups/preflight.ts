/** Tries each operation of the IAM role and finds the groups of all Nodes, for `tenon preflight` (cluster-autoscaler.md 1). */
import { kinds } from '@tenon/api'
import type {
  CloudOperation,
  NodeGroupCheck,
  NodeGroupPreflight,
  NodeGroupPreflightDependencies,
  PreflightFinding,
  ProviderEnvironment,
} from '@tenon/provider'
import { messageOf, silentLogger, type Transport } from '@tenon/runtime'
import { ExoscaleClient } from '../api/client.ts'
import { routeTo } from '../api/connection/proxy.ts'
import { answered, nobody } from '../preflight/operations.ts'
import { NodeGroupApi } from './call-api.ts'
import { ExoscaleNodeGroups } from './node-groups.ts'
import { readNodeGroupSettings } from '../api/node-group-settings.ts'
import { parseSpec } from './specs.ts'

/** A user waits, so calls time out sooner than those of a loop. */
const patience = { maxAttempts: 2, attemptTimeoutMs: 8_000 } as const

const nodepools = 'SKS nodepools are not scaled, which matters only with SKS'
const pools = 'Instance Pools are not scaled, which matters only for those that no SKS nodepool manages'

type Call = (client: ExoscaleClient, signal: AbortSignal) => Promise<unknown>

/** The operations of both IAM roles in examples/cluster-autoscaler/iam, with calls for what does not exist. */
const calls: readonly (readonly [name: string, call: Call, optional?: string])[] = [
  ['get-instance', (client, signal) => client.getInstance(nobody, signal)],
  ['get-instance-pool', (client, signal) => client.getInstancePool(nobody, signal)],
  ['get-operation', (client, signal) => client.getOperation(nobody, signal)],
  [
    'get-quota',
    (client, signal) => client.getQuota('instance', signal),
    'groups without --nodes are not scaled, as their maximum is the quota',
  ],
  ['list-sks-clusters', (client, signal) => client.listSksClusters(signal), nodepools],
  [
    'scale-sks-nodepool',
    (client, signal) => client.scaleSksNodepool(nobody, nobody, { size: 1 }, signal),
    nodepools,
  ],
  [
    'evict-sks-nodepool-members',
    (client, signal) => client.evictSksNodepoolMembers(nobody, nobody, { instances: [nobody] }, signal),
    nodepools,
  ],
  ['scale-instance-pool', (client, signal) => client.scaleInstancePool(nobody, { size: 1 }, signal), pools],
  [
    'evict-instance-pool-members',
    (client, signal) => client.evictInstancePoolMembers(nobody, { instances: [nobody] }, signal),
    pools,
  ],
]

/**
 * @param connect opens a transport to an endpoint.
 * @throws ProviderSettingError for the first missing or invalid variable.
 */
export function groupPreflight(
  dependencies: NodeGroupPreflightDependencies,
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
): NodeGroupPreflight {
  const { env, nodeGroupSpecs, allowsEmptyGroups, runtime, userAgent } = dependencies
  const { clock } = runtime
  const { zone, apiKey: key, apiSecret: secret, endpoint } = readNodeGroupSettings(env)
  const client = new ExoscaleClient({
    transport: connect(endpoint, env),
    basePath: new URL(endpoint).pathname.replace(/\/+$/, ''),
    credentials: { key, secret },
    clock,
    userAgent,
    ...patience,
  })
  const groups = new ExoscaleNodeGroups({
    api: new NodeGroupApi(client),
    zone,
    nodeGroupSpecs,
    allowsEmptyGroups,
    clock,
    logger: silentLogger,
  })
  const url = new URL(endpoint)
  const route = routeTo(url, env)
  return {
    access: {
      hosts: [(route.kind === 'proxied' ? route.proxy.url : url).hostname],
      operations: calls.map(
        ([name, call, optional]): CloudOperation => ({
          name,
          ...(optional !== undefined && { optional }),
          attempt: (signal) => answered(() => call(client, signal), signal),
        }),
      ),
      credentialsFix:
        'check that EXOSCALE_API_KEY and EXOSCALE_API_SECRET belong together and that the key has not been revoked',
      grantFix: (operations) =>
        `allow ${operations.join(', ')} of the service compute in the IAM role of EXOSCALE_API_KEY (examples/cluster-autoscaler/iam)`,
    },
    checks: [{ name: 'node-groups', run: (signal) => checkGroups(dependencies, groups, signal) }],
  }
}

async function checkGroups(
  { clusters, nodeGroupSpecs, allowsEmptyGroups }: NodeGroupPreflightDependencies,
  groups: ExoscaleNodeGroups,
  signal: AbortSignal,
): ReturnType<NodeGroupCheck['run']> {
  const findings: PreflightFinding[] = nodeGroupSpecs.flatMap((text) => {
    const spec = parseSpec(text, allowsEmptyGroups ? 0 : 1)
    return spec.kind === 'malformed'
      ? [{ status: 'fail', message: spec.problem, fix: 'correct it: write --nodes=MIN:MAX:NAME' }]
      : []
  })
  const fault = (message: string): PreflightFinding => ({
    status: 'fail',
    message,
    fix: 'see the checks credentials and cloud-rights',
  })
  try {
    await groups.refresh(signal)
  } catch (error) {
    signal.throwIfAborted()
    findings.push(fault(messageOf(error)))
  }
  const unresolved = new Set<string>()
  for (const node of await clusters.workload.client.list(kinds.node, { signal })) {
    const found = await groups.groupOf(node, signal)
    if (found.kind === 'unresolved') unresolved.add(found.reason)
  }
  findings.push(...[...unresolved].map(fault))
  const known = groups.list()
  const missing = nodeGroupSpecs.flatMap((text) => {
    const spec = parseSpec(text, allowsEmptyGroups ? 0 : 1)
    return spec.kind === 'spec' && !known.some(({ id, name }) => [id, name].includes(spec.name)) ? spec : []
  })
  for (const { name } of missing)
    findings.push({
      status: 'warn',
      message: `--nodes names ${name}, and no Node is in a group of that name`,
      fix: allowsEmptyGroups
        ? 'correct the name'
        : 'correct the name, or give --allow-scale-to-zero if the group has no node now',
    })
  for (const { name, targetSize, minSize, maxSize } of known)
    if (targetSize < minSize || targetSize > maxSize)
      findings.push({
        status: 'warn',
        message: `node group ${name} has size ${targetSize}, outside of ${minSize} to ${maxSize} of --nodes`,
        fix: 'change the bounds in --nodes, or the size at the cloud',
      })
  if (known.length === 0 && findings.every(({ status }) => status !== 'fail'))
    findings.push({
      status: 'fail',
      message: 'no Node of the cluster is in an SKS nodepool or an Instance Pool',
      fix: 'check --kubeconfig and EXOSCALE_ZONE, and that Nodes have a provider ID such as exoscale://UUID',
    })
  const names = known.map(({ name, minSize, maxSize }) => `${name} (${minSize} to ${maxSize})`)
  return {
    summary: `${known.length} node group${known.length === 1 ? '' : 's'}: ${names.join(', ')}`,
    findings,
  }
}
