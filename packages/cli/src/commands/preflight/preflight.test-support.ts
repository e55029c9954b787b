/** A cluster in a simulated Exoscale zone in which Tenon runs and nothing is wrong, and `tenon preflight` for it. */
import { kinds, type KubeObject, labels, type Node, type ResourceType } from '@tenon/api'
import { createCredentials, type LocalApi, startDevCluster } from '@tenon/devcluster'
import { createAccessReviews, createKubeClient } from '@tenon/kube'
import { clusterRights, leaseRights } from '@tenon/operator'
import { type AccessRule, clusterRulesOf, type ProviderModule } from '@tenon/provider'
import { preflightModuleOver } from '@tenon/provider-exoscale'
import { exoscale } from '@tenon/provider-exoscale/module'
import { exoscaleSimulator } from '@tenon/simulator-exoscale'
import {
  type HttpRequest,
  rfc3339,
  Secret,
  SeededRandom,
  silentLogger,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { deploymentKind } from '../../source/autoscalers.ts'
import { allCrds } from '../../crds.ts'
import type { CheckResult } from './check.ts'
import { definitionKind } from './checks/crds.ts'
import { openContext, type PreflightSettings } from './open-context.ts'
import { checks, runChecks } from './run-checks.ts'

const zone = 'ch-gva-2'
const clusterId = 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11'
const key = 'EXOpreflight'
const secret = 'the-secret-of-the-key'
const namespace = 'kube-system'
const accountName = 'karpenter'

const rbac = (kind: string, plural: string, namespaced = false): ResourceType<KubeObject & object> => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced,
})
export const clusterRoleKind: ResourceType<KubeObject & { readonly rules: readonly AccessRule[] }> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
}
const roleKind = rbac('Role', 'roles', true)

export interface StandOptions {
  /** What the API key may call; everything when absent. */
  readonly operations?: readonly string[]
  readonly gitVersion?: string
}

/** What a run of the checks is like. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** How far the API server's clock is ahead, in milliseconds. */
  readonly skewMs?: number
  readonly resolveHost?: (host: string) => Promise<void>
  /** In front of the API server. */
  readonly through?: (server: Transport) => Transport
  readonly settings?: Partial<PreflightSettings>
}

export interface Stand {
  readonly api: LocalApi
  /** Writes as Karpenter does. */
  readonly karpenter: LocalApi
  readonly clock: VirtualClock
  /** Requests that changed something in the cluster. */
  readonly writes: readonly string[]
  readonly instances: () => number
  run(options?: RunOptions): Promise<readonly CheckResult[]>
  stop(): void
}

let credentials: ReturnType<typeof createCredentials> | undefined

/** Starts a cluster in which every check is good. Time stands still but for {@link Stand.clock}. */
export async function goodCluster({ operations, gitVersion = 'v1.35.2' }: StandOptions = {}): Promise<Stand> {
  const clock = new VirtualClock()
  credentials ??= createCredentials(clock.now())
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    credentials: await credentials,
    gitVersion,
    simulator: exoscaleSimulator({
      zone,
      clusterId,
      key,
      secret: new Secret(secret),
      ...(operations && { operations }),
    }),
  })
  const { cloud } = cluster
  const api = cluster.server.localAs('kubectl')
  await addObjects(api, clock)
  const module: ProviderModule = {
    ...exoscale,
    preflight: () => Promise.resolve(preflightModuleOver(() => ({ send: cloud.handle }))),
  }
  const writes: string[] = []
  const run = async (options: RunOptions = {}) => {
    const { skewMs = 0, through = (server) => server, settings } = options
    const server = through(dated(cluster.transport, clock, skewMs, writes))
    const access = { transport: server, clock, requestTimeoutMs: 60_000 }
    const limitMs = settings?.limitMs ?? 10_000
    const signal = new AbortController().signal
    const context = await openContext(
      {
        transport: server,
        kube: createKubeClient(access),
        access: createAccessReviews(access),
        clock,
        env: { ...environment, ...options.env },
        providers: { all: [module] },
        resolveHost: options.resolveHost ?? (() => Promise.resolve()),
      },
      { ...settings, limitMs },
      signal,
    )
    return await runChecks(checks, context, limitMs, signal)
  }
  return {
    api,
    karpenter: cluster.server.localAs('karpenter'),
    clock,
    writes,
    instances: () => cloud.instances().length,
    run,
    stop: () => {
      cluster.stop()
    },
  }
}

const environment = {
  EXOSCALE_ZONE: zone,
  EXOSCALE_SKS_CLUSTER_ID: clusterId,
  EXOSCALE_API_KEY: key,
  EXOSCALE_API_SECRET: secret,
}

/** The server on a socket tells the time of each answer. Access reviews change nothing. */
function dated(server: Transport, clock: VirtualClock, skewMs: number, writes: string[]): Transport {
  return {
    send: async (request: HttpRequest, signal?: AbortSignal) => {
      if (request.method !== 'GET' && !request.path.includes('accessreviews'))
        writes.push(`${request.method} ${request.path}`)
      const response = await server.send(request, signal)
      const date = new Date(clock.now() + skewMs).toUTCString()
      return { ...response, headers: { ...response.headers, date } }
    },
  }
}

async function addObjects(api: LocalApi, clock: VirtualClock): Promise<void> {
  for (const crd of await allCrds([exoscale])) api.create(definitionKind, crd as KubeObject)
  addNode(api, node('system-1'))
  const chart = await exoscale.chart?.()
  if (chart === undefined) throw new Error('Exoscale is in the chart')
  const ofGroups = clusterRights.filter((rule) => rule.with === 'groupScheduling')
  const core = clusterRights.filter((rule) => !ofGroups.includes(rule))
  addRole(api, 'core', [...core, ...clusterRulesOf(exoscale.nodeClasses, chart)])
  addRole(api, 'groups', ofGroups)
  addRole(api, 'lease', leaseRights('karpenter-leader-election'), namespace)
  for (const role of chart.roles) addRole(api, role.name, role.rules, role.namespace)
  api.create(deploymentKind, tenonDeployment)
  api.create(kinds.lease, lease(namespace, 'karpenter-leader-election', clock))
  api.create(kinds.pod, pod('web-1'))
  api.create(kinds.pod, pod('web-2'))
  api.create(kinds.podDisruptionBudget, budget('web', { minAvailable: 1 }))
}

function addRole(api: LocalApi, name: string, rules: readonly AccessRule[], within?: string): void {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const plain = rules.map(({ apiGroups, resources, resourceNames, verbs }) => ({
    apiGroups,
    resources,
    verbs,
    ...(resourceNames && { resourceNames }),
  }))
  const metadata = { name, ...(within !== undefined && { namespace: within }) }
  const kind = within === undefined ? 'ClusterRole' : 'Role'
  const role = { apiVersion, kind, metadata, rules: plain }
  if (within === undefined) api.create(clusterRoleKind, role)
  else api.create(roleKind, role)
  const bindingKind = within === undefined ? 'ClusterRoleBinding' : 'RoleBinding'
  api.create(rbac(bindingKind, `${bindingKind.toLowerCase()}s`, within !== undefined), {
    apiVersion,
    kind: bindingKind,
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
    subjects: [{ kind: 'ServiceAccount', name: accountName, namespace }],
  } as KubeObject)
}

const tenonDeployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'karpenter', namespace },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'karpenter' } },
    template: {
      metadata: { labels: { app: 'karpenter' } },
      spec: {
        serviceAccountName: accountName,
        containers: [
          {
            name: 'controller',
            image: 'registry.example.com/tenon:v0.1.0',
            args: ['controller', '--provider=exoscale'],
            resources: { requests: { cpu: '1', memory: '512Mi' } },
          },
        ],
      },
    },
  },
}

/** A node of a group of the cloud, with room. */
export function node(name: string, own: Readonly<Record<string, string>> = {}): Node {
  const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: own },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

/** Adds a node, and takes the taint away that new nodes have until their kubelet has reported. */
export function addNode(api: LocalApi, added: Node): void {
  api.create(kinds.node, added)
  api.patch(kinds.node, undefined, added.metadata.name, { spec: { taints: null } })
}

/** A label of nodes that Tenon manages. */
export const managed = { [labels.nodePool]: 'standard' }

export function lease(within: string, name: string, clock: VirtualClock) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: within },
    spec: {
      holderIdentity: 'somebody',
      leaseDurationSeconds: 15,
      renewTime: rfc3339(clock.now()).replace('Z', '.000000Z'),
    },
  }
}

function pod(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'web' } },
    spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause' }] },
  }
}

export function budget(name: string, spec: object) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  }
}
