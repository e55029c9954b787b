/** Builds the provider from its parts. */
import { type InstanceType, kinds, type PriceList } from '@tenon/api'
import type { Cache, Controller, ControllerOptions, EventRecorder, KubeClient } from '@tenon/kube'
import { type OfferingNews, ProviderError } from '@tenon/provider'
import { Listeners, type Runtime } from '@tenon/runtime'
import { candidatesFor } from './catalogue/candidates.ts'
import { Catalogue } from './catalogue/catalogue.ts'
import { instanceTypesOf } from './catalogue/instance-types.ts'
import type { Architecture } from './catalogue/node-labels.ts'
import { InfrastructureTemplates } from './catalogue/templates.ts'
import { ClusterApiControllers } from './controllers.ts'
import type { Hub } from './hub/hub.ts'
import { HubReads } from './hub/objects-of-hub.ts'
import { Deployments } from './machines/deployments.ts'
import { FollowedMachines } from './machines/followed-machines.ts'
import { Launcher, type Workload } from './machines/launcher.ts'
import { MachineFinder } from './machines/machine-finder.ts'
import { Releaser } from './machines/releaser.ts'
import { ReplicaContests } from './catalogue/replica-contests.ts'
import { MachineSweep } from './machines/sweep.ts'
import { ClusterApiMetrics } from './metrics.ts'
import { NodeClassStatus } from './nodeclass/status-controller.ts'
import type { ClusterAPINodeClass } from './node-class.ts'
import { ClusterApiProvider } from './provider.ts'

/** What the provider needs. */
export interface ClusterApiParts {
  readonly hub: Hub & { start(signal: AbortSignal): void }
  /** The workload cluster. */
  readonly kubernetes: {
    readonly client: Pick<KubeClient, 'get' | 'list' | 'patch'>
    readonly nodeClasses: Cache<ClusterAPINodeClass>
    readonly events: EventRecorder
  }
  /** Inputs of instance types in addition to the objects of the hub. */
  readonly defaults: {
    readonly prices: PriceList
    readonly architecture: Architecture
  }
  readonly runtime: Pick<Runtime, 'clock' | 'logger'>
  /** Creates a controller without starting it. */
  readonly createController: (options: ControllerOptions) => Controller
}

/** Creates the provider; nothing runs before its controllers are started. */
export function createClusterApiProvider(parts: ClusterApiParts): ClusterApiProvider {
  const { hub, kubernetes, defaults, runtime } = parts
  const { client: kube, nodeClasses, events } = kubernetes
  const { clock, logger } = runtime
  const reads = new HubReads(hub)
  const followed = new FollowedMachines(hub)
  const templates = new InfrastructureTemplates({ hub, clock, logger })
  const contests = new ReplicaContests(clock)
  const catalogue = new Catalogue({ hub, templates, nodeClasses, contests, ...defaults, logger })
  const identity = clusterIdentity(kube)
  const news = new Listeners<OfferingNews>()
  const metrics = new ClusterApiMetrics(() => hub.state.kind === 'open')
  const machines = new MachineFinder(hub, reads, followed)
  const deployments = new Deployments({ hub, reads, identity, contests, clock, logger }, followed)
  const workload = { kube, nodeClasses, events, identity, candidates: candidatesOf(catalogue) }
  const launcher = new Launcher({ view: { hub, reads }, workload, machines, deployments, followed, clock })
  const releaser = new Releaser({ hub, machines, deployments, launcher, news, clock })
  const nodeClassStatus = new NodeClassStatus({
    kube,
    nodeClasses,
    deployments: { catalogue, prices: defaults.prices, names: hub.names },
    events,
    clock,
  })
  const view = { hub, reads, deployments, identity }
  const process = { clock, logger }
  const sweep = new MachineSweep({ hub: view, kube, nodeClasses, events, releaser, metrics, process })
  return new ClusterApiProvider({
    view: { ...view, nodeClasses, news, metrics },
    catalogue,
    machines,
    launcher,
    releaser,
    controllers: new ClusterApiControllers(
      { sweep, nodeClassStatus },
      { hub, nodeClasses },
      parts.createController,
    ),
  })
}

function candidatesOf(catalogue: Catalogue): Workload['candidates'] {
  return async (claim, nodeClass, types: readonly InstanceType[] | undefined) => {
    const found = await catalogue.readingsOf(nodeClass)
    if (found.kind !== 'read')
      throw new ProviderError('other', `ClusterAPINodeClass ${nodeClass.metadata.name}: ${found.because}`)
    const participants = found.readings.flatMap((each) =>
      each.kind === 'participant' ? [each.participant] : [],
    )
    return candidatesFor(claim, participants, types ?? instanceTypesOf(participants))
  }
}

/** The UID of kube-system, which identifies a cluster. */
function clusterIdentity(kube: Pick<KubeClient, 'get'>): () => Promise<string> {
  let known: string | undefined
  return async () => {
    known ??= (await kube.get(kinds.namespace, { name: 'kube-system' }))?.metadata.uid
    if (known === undefined)
      throw new ProviderError('other', 'the cluster has no namespace kube-system, whose UID identifies it')
    return known
  }
}
