/** MachineDeployments on a management cluster in memory, as the Cluster Autoscaler mode opens them. */
import { apiVersionOf, type KubeObject, type Node, type ResourceType } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { createKubeClient } from '@tenon/kube'
import type { NodeGroupDependencies, NodeGroups } from '@tenon/provider'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import { prepareHub, type SimulatedKinds, simulatedKinds } from '@tenon/simulator-cluster-api'
import { SeededRandom, silentLogger, SystemClock, type Transport } from '@tenon/runtime'

const namespace = 'default'
const clusterName = 'workload'
const deploymentName = 'cluster.x-k8s.io/deployment-name'

/** A benchmark's cloud. */
export interface BenchCloud {
  readonly groups: NodeGroups
  /** Nodes that were requested. */
  readonly added: () => number
  /** Requests to the management cluster, without watches. */
  readonly requests: () => number
  readonly close: () => void
}

/** One MachineDeployment for each value of the label `pool`, with a Machine for each Node. */
export async function openClusterApi(nodes: readonly Node[]): Promise<BenchCloud> {
  const clock = new SystemClock()
  const server = createTestApiServer({ clock })
  const hub = server.localAs('kubectl')
  const kinds = simulatedKinds('cluster.x-k8s.io', 'v1beta2')
  prepareHub(hub)
  fill(hub, kinds, nodes)
  let requests = 0
  const transport: Transport = {
    send: (request, signal) => {
      if (!request.path.includes('watch=true')) requests++
      const headers = { ...request.headers, authorization: 'Bearer admin' }
      return server.handle({ ...request, headers }, signal)
    },
  }
  const connected = {
    client: createKubeClient({ transport, clock, userAgent: 'tenon/bench' }),
    server: 'https://hub',
  }
  const dependencies: NodeGroupDependencies = {
    env: {},
    clusters: { workload: connected, management: connected },
    discoverySpecs: [],
    nodeGroupSpecs: [],
    allowsEmptyGroups: true,
    cloud: { fenced: (each) => each, userAgent: 'tenon/bench' },
    runtime: { clock, random: new SeededRandom('groups'), logger: silentLogger },
  }
  const groups = (await clusterApi.nodeGroups?.())?.open(dependencies)
  if (groups === undefined) throw new Error('Cluster API has no node groups')
  const end = new AbortController()
  await groups.start?.(end.signal)
  const replicas = () =>
    hub.list(kinds.deployment, { namespace }).reduce((sum, { spec }) => sum + (spec?.replicas ?? 0), 0)
  return {
    groups,
    added: () => replicas() - nodes.length,
    requests: () => requests,
    close: () => {
      end.abort(new Error('the benchmark ends'))
      server.stop()
    },
  }
}

function fill(hub: LocalApi, kinds: SimulatedKinds, nodes: readonly Node[]): void {
  const pools = Map.groupBy(nodes, ({ metadata }) => metadata.labels?.['pool'] ?? '')
  for (const [pool, members] of pools) {
    const name = `md-${pool}`
    const labels = { [deploymentName]: name }
    const spec = { clusterName, replicas: members.length, template: { spec: { clusterName } } }
    const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
    const annotations = { [size('min')]: '1', [size('max')]: '100000' }
    hub.create(kinds.deployment, object(kinds.deployment, { name, annotations }, spec))
    const revision = { 'machinedeployment.clusters.x-k8s.io/revision': '1' }
    const set = hub.create(
      kinds.set,
      object(
        kinds.set,
        { name: `${name}-1`, labels, annotations: revision, ownerReferences: owned(kinds.deployment, name) },
        spec,
      ),
    )
    const ownerReferences = owned(kinds.set, set.metadata.name)
    for (const { metadata, spec: node } of members) {
      const machine = object(
        kinds.machine,
        { name: metadata.name, labels, ownerReferences },
        { clusterName, providerID: node?.providerID ?? '' },
      )
      hub.create(kinds.machine, machine)
      const status = { phase: 'Running', nodeRef: { name: metadata.name } }
      hub.patch(kinds.machine, namespace, metadata.name, { status }, 'status')
    }
  }
}

function object<S>(
  type: ResourceType,
  metadata: KubeObject['metadata'],
  spec: S,
): KubeObject & { readonly spec: S } {
  return { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { namespace, ...metadata }, spec }
}

const owned = (type: ResourceType, name: string) => [
  { apiVersion: apiVersionOf(type), kind: type.kind, name, uid: name, controller: true },
]
