/** A management cluster with the real controllers of Cluster API, and the tests' own infrastructure provider. */
import type { KubeObject, ResourceList, Taint } from '@tenon/api'
import { createKubeClient, type KubeClient, loadKubeConfig, type WatchingKubeClient } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { TestInfrastructure } from './infrastructure.ts'
import { ignoringGone, install, keyOf, uninstall } from './installation.ts'
import {
  capiKinds,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  ownReference,
  testKinds,
} from './kinds.ts'
import { CoreManager } from './manager.ts'
import {
  bootstrapSecret,
  createCluster,
  createTopology,
  createWithStatus,
  isReached,
} from './workload-cluster.ts'

export interface HubOptions {
  /** Of the management cluster; the manager logs to its `logs/`. */
  readonly kubeconfigPath: string
  /** Of the cluster that the Machines join; default: the management cluster. */
  readonly workloadKubeconfigPath?: string
}

export interface MachineDeploymentParts {
  readonly name: string
  /** Also the name of the Cluster. Default {@link fleet}. */
  readonly namespace?: string
  /** Default 0. */
  readonly replicas?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Labels and annotations of the Machine template. */
  readonly template?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  /** What the infrastructure provides, and reports in its template's status. Default 2 CPUs, 4Gi, 110 pods. */
  readonly capacity?: ResourceList
  /** Labels with which its kubelets register. */
  readonly nodeLabels?: Readonly<Record<string, string>>
  readonly nodeTaints?: readonly Taint[]
  /** Kubernetes version of the machines; default: that of the workload cluster; empty: none. */
  readonly version?: string
  /** Additional fields of the MachineDeployment's spec. */
  readonly spec?: Readonly<Record<string, unknown>>
}

/** The name of the Cluster and of its namespace. */
export const fleet = 'fleet'
const defaultCapacity = { cpu: '2', memory: '4Gi', pods: '110', 'ephemeral-storage': '20Gi' }
const pollMs = 100
const waitMs = 120_000

export class ClusterApiHub {
  readonly client: WatchingKubeClient
  /** Client of the workload cluster. */
  readonly workload: KubeClient
  readonly infrastructure: TestInfrastructure
  readonly clock = new SystemClock()
  /** Kubernetes version of machines, unless their MachineDeployment has one: that of the workload cluster. */
  #version = ''
  readonly #manager: CoreManager
  /** Kubeconfig of the workload cluster. */
  readonly #nodesAt: string
  readonly #close: () => void

  private constructor(
    manager: CoreManager,
    client: WatchingKubeClient,
    workload: KubeClient,
    nodesAt: string,
    close: () => void,
  ) {
    this.#manager = manager
    this.#nodesAt = nodesAt
    this.client = client
    this.workload = workload
    this.infrastructure = new TestInfrastructure(client, workload, this.clock)
    this.#close = close
  }

  /**
   * Installs the CRDs, starts controllers, webhooks and infrastructure, and creates a Cluster named {@link
   * fleet} that is the workload cluster.
   * @throws GoMissingError, BuildFailedError, ProcessEndedError
   */
  static async open({ kubeconfigPath, workloadKubeconfigPath }: HubOptions): Promise<ClusterApiHub> {
    const clock = new SystemClock()
    const nodesAt = workloadKubeconfigPath ?? kubeconfigPath
    const connect = (kubeconfig: string) => {
      const config = loadKubeConfig({ env: {}, kubeconfig, clock })
      const { transport } = config
      const client = createKubeClient({ transport, clock, userAgent: 'cluster-api-stand' })
      return { client, close: () => config.close() }
    }
    const manager = await CoreManager.prepare(kubeconfigPath, clock)
    const [management, workload] = [connect(kubeconfigPath), connect(nodesAt)]
    const hub = new ClusterApiHub(manager, management.client, workload.client, nodesAt, () => {
      management.close()
      workload.close()
    })
    try {
      hub.#version = await hub.workload.serverVersion()
      await install(hub.client, manager.manifests, clock)
      await manager.start()
      hub.infrastructure.start()
      await createCluster(hub.client, fleet, nodesAt)
      await hub.until('the Cluster is reached', () => isReached(hub.client, fleet))
    } catch (error) {
      await hub.close()
      throw error
    }
    return hub
  }

  startManager(): Promise<void> {
    return this.#manager.start()
  }

  /** While it is stopped, the API server rejects writes of its kinds, as no webhook responds. */
  stopManager(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    return this.#manager.stop(signal)
  }

  /** Creates a MachineDeployment with its own template, in v1beta2. */
  async addMachineDeployment(parts: MachineDeploymentParts): Promise<MachineDeployment> {
    const { name, namespace = fleet, labels = {}, annotations = {}, replicas = 0 } = parts
    const template = await this.#addTemplate(parts)
    return this.client.create(capiKinds.machineDeployment, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'MachineDeployment',
      metadata: { name, namespace, labels, annotations },
      spec: { clusterName: namespace, replicas, selector: {}, template, ...parts.spec },
    })
  }

  /** Creates a MachineSet of its own, with its own template, in v1beta2. */
  async addMachineSet(parts: MachineDeploymentParts): Promise<MachineSet> {
    const { name, namespace = fleet, labels = {}, annotations = {}, replicas = 0 } = parts
    const matchLabels = { 'cluster.x-k8s.io/set-name': name }
    const template = await this.#addTemplate({ ...parts, template: { labels: matchLabels } })
    return this.client.create(capiKinds.machineSet, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'MachineSet',
      metadata: { name, namespace, labels, annotations },
      spec: { clusterName: namespace, replicas, selector: { matchLabels }, template, ...parts.spec },
    })
  }

  /**
   * Creates a Cluster of a ClusterClass with one MachineDeployment; all have this name, as has their namespace.
   * @param annotations of the MachineDeployment.
   */
  async addTopology({
    name,
    annotations = {},
    capacity = defaultCapacity,
    nodeLabels = {},
  }: MachineDeploymentParts): Promise<void> {
    const machine = { capacity, nodeLabels }
    await createTopology(this.client, { name, version: this.#version, annotations, machine }, this.#nodesAt)
    await this.until(`Cluster ${name} is reached`, () => isReached(this.client, name))
  }

  /** Gives the Cluster of a ClusterClass the next patch version of Kubernetes; returns it. */
  async upgradeTopology(name: string): Promise<string> {
    const version = this.#version.replace(/\d+$/, (patch) => String(Number(patch) + 1))
    const patch = { spec: { topology: { version } } }
    await this.client.patch(capiKinds.cluster, { namespace: name, name }, patch)
    return version
  }

  /** Creates a template of the infrastructure; returns that of its Machines. */
  async #addTemplate(parts: MachineDeploymentParts): Promise<MachineDeployment['spec']['template']> {
    const { name, namespace = fleet } = parts
    const { capacity = defaultCapacity, nodeLabels = {}, nodeTaints = [] } = parts
    await createWithStatus(this.client, testKinds.machineTemplate, {
      metadata: { name, namespace },
      spec: { template: { spec: { capacity, nodeLabels, nodeTaints } } },
      status: { capacity, nodeInfo: { architecture: 'amd64', operatingSystem: 'linux' } },
    })
    const spec = {
      clusterName: namespace,
      bootstrap: { dataSecretName: bootstrapSecret },
      infrastructureRef: ownReference(testKinds.machineTemplate.kind, name),
      ...(parts.version !== '' && { version: parts.version ?? this.#version }),
    }
    return { metadata: parts.template ?? {}, spec }
  }

  async scale(name: string, replicas: number): Promise<void> {
    const key = { namespace: fleet, name }
    await this.client.patch(capiKinds.machineDeployment, key, { spec: { replicas } })
  }

  /** The Machines of a MachineDeployment sorted by name, including those that are being deleted. */
  async machines(deployment: string): Promise<readonly Machine[]> {
    const labelSelector = { matchLabels: { 'cluster.x-k8s.io/deployment-name': deployment } }
    const machines = await this.client.list(capiKinds.machine, { namespace: fleet, labelSelector })
    return machines.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }

  /** Waits until this many Machines exist and each has its Node. */
  async untilRunning(deployment: string, count: number): Promise<readonly Machine[]> {
    let machines: readonly Machine[] = []
    await this.until(`${count} Machines of ${deployment} have nodes`, async () => {
      machines = await this.machines(deployment)
      return machines.length === count && machines.every(({ status }) => status?.nodeRef !== undefined)
    })
    return machines
  }

  /**
   * Polls until the probe holds.
   * @throws Error naming `what` after two minutes: three control planes may share two processors.
   */
  async until(what: string, probe: () => Promise<boolean>): Promise<void> {
    const deadline = this.clock.monotonic() + waitMs
    while (!(await probe())) {
      if (this.clock.monotonic() > deadline) throw new Error(`not within ${waitMs / 1000} s: ${what}`)
      await this.clock.sleep(pollMs)
    }
  }

  /** Ends all faults, deletes all MachineDeployments and waits until their Machines are gone. */
  async clear(): Promise<void> {
    this.infrastructure.faults.clear()
    // A topology would make its MachineDeployment anew.
    for (const { metadata, spec } of await this.client.list(capiKinds.cluster))
      if (spec.topology !== undefined)
        await ignoringGone(this.client.delete(capiKinds.cluster, keyOf(metadata)))
    for (const { metadata } of await this.client.list(capiKinds.machineDeployment))
      await ignoringGone(this.client.delete(capiKinds.machineDeployment, keyOf(metadata)))
    for (const { metadata } of await this.client.list(capiKinds.machineSet))
      if ((metadata.ownerReferences ?? []).every(({ kind }) => kind !== 'MachineDeployment'))
        await ignoringGone(this.client.delete(capiKinds.machineSet, keyOf(metadata)))
    await this.until('no Machine is left', async () => {
      const left = [capiKinds.machineDeployment, capiKinds.machineSet, capiKinds.machine]
      const lists = await Promise.all(left.map((type) => this.client.list<KubeObject>(type)))
      return lists.every((list) => list.length === 0)
    })
    for (const { metadata } of await this.client.list(testKinds.machineTemplate))
      await ignoringGone(this.client.delete(testKinds.machineTemplate, keyOf(metadata)))
  }

  /** Stops everything and uninstalls Cluster API; nodes of remaining Machines stay. */
  async close(): Promise<void> {
    await this.infrastructure.stop()
    await this.#manager.stop()
    await uninstall(this.client, this.#manager.manifests)
    this.#manager.close()
    this.#close()
  }
}
