/** A management cluster with the real controllers of Cluster API, and the tests' own infrastructure provider. */
import { type KubeObject, kinds, type ResourceList, type Taint } from '@tenon/api'
import { createKubeClient, type KubeClient, loadKubeConfig, type WatchingKubeClient } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { TestInfrastructure } from './infrastructure.ts'
import { ignoringGone, install, keyOf, tearOut, uninstall } from './installation.ts'
import {
  capiKinds,
  isControlPlane,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  kubeadmKinds,
  referenceTo,
  testKinds,
} from './kinds.ts'
import { uninitialize } from './kubeadm.ts'
import { Managers } from './manager.ts'
import {
  bootstrapSecret,
  type ClusterParts,
  createCluster,
  createTopology,
  createWithStatus,
  isReached,
} from './workload-cluster.ts'

export interface HubOptions {
  /** Of the management cluster; the managers log to its `logs/`. */
  readonly kubeconfigPath: string
  /**
   * Whether kubeadm's providers create control planes and bootstrap data; otherwise both exist already, as with a
   * managed control plane.
   */
  readonly isKubeadm?: boolean
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
const kubeadmManagers = ['kubeadm-bootstrap-manager', 'kubeadm-control-plane-manager'] as const
const defaultCapacity = { cpu: '2', memory: '4Gi', pods: '110', 'ephemeral-storage': '20Gi' }
const pollMs = 100
const waitMs = 240_000

export class ClusterApiHub {
  readonly client: WatchingKubeClient
  /** Client of the workload cluster. */
  readonly workload: KubeClient
  readonly infrastructure: TestInfrastructure
  readonly clock = new SystemClock()
  /** Kubernetes version of machines, unless their MachineDeployment has one: that of the workload cluster. */
  #version = ''
  readonly #managers: Managers
  /** Kubeconfig of the workload cluster. */
  readonly #nodesAt: string
  readonly #isKubeadm: boolean
  readonly #close: () => void

  private constructor(
    managers: Managers,
    client: WatchingKubeClient,
    workload: KubeClient,
    { nodesAt, isKubeadm }: { readonly nodesAt: string; readonly isKubeadm: boolean },
    close: () => void,
  ) {
    this.#managers = managers
    this.#nodesAt = nodesAt
    this.#isKubeadm = isKubeadm
    this.client = client
    this.workload = workload
    this.infrastructure = new TestInfrastructure(client, workload, this.clock)
    this.#close = close
  }

  /**
   * Installs the CRDs, starts controllers, webhooks and infrastructure, and creates a Cluster named {@link
   * fleet} that is the workload cluster, without the nodes that others left there.
   * @throws GoMissingError, BuildFailedError, ProcessEndedError
   */
  static async open(options: HubOptions): Promise<ClusterApiHub> {
    const { kubeconfigPath, workloadKubeconfigPath, isKubeadm = false } = options
    const clock = new SystemClock()
    const nodesAt = workloadKubeconfigPath ?? kubeconfigPath
    const connect = (kubeconfig: string) => {
      const config = loadKubeConfig({ env: {}, kubeconfig, clock })
      const { transport } = config
      const client = createKubeClient({ transport, clock, userAgent: 'cluster-api-stand' })
      return { client, close: () => config.close() }
    }
    const managers = await Managers.prepare(
      ['cluster-api-manager', ...(isKubeadm ? kubeadmManagers : [])],
      kubeconfigPath,
      clock,
    )
    const [management, workload] = [connect(kubeconfigPath), connect(nodesAt)]
    const close = () => {
      management.close()
      workload.close()
    }
    const hub = new ClusterApiHub(managers, management.client, workload.client, { nodesAt, isKubeadm }, close)
    try {
      hub.#version = await hub.workload.serverVersion()
      await tearOut(hub.workload, kinds.node)
      await install(hub.client, managers.manifests, clock)
      await managers.start()
      hub.infrastructure.start()
      await createCluster(hub.client, hub.#cluster(fleet))
      await hub.until('the Cluster is reached', () => isReached(hub.client, fleet))
    } catch (error) {
      await hub.close()
      throw error
    }
    return hub
  }

  startManagers(): Promise<void> {
    return this.#managers.start()
  }

  /** While they are stopped, the API server rejects writes of their kinds, as no webhook responds. */
  stopManagers(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    return this.#managers.stop(signal)
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
    await createTopology(this.client, { ...this.#cluster(name), annotations, machine })
    await this.until(`Cluster ${name} is reached`, () => isReached(this.client, name))
  }

  /** Gives the Cluster of a ClusterClass the next patch version of Kubernetes; returns it. */
  async upgradeTopology(name: string): Promise<string> {
    const version = this.#version.replace(/\d+$/, (patch) => String(Number(patch) + 1))
    const patch = { spec: { topology: { version } } }
    await this.client.patch(capiKinds.cluster, { namespace: name, name }, patch)
    return version
  }

  #cluster(name: string): ClusterParts {
    return {
      name,
      version: this.#version,
      isKubeadm: this.#isKubeadm,
      kubeconfigPath: this.#nodesAt,
      nowMs: this.clock.now(),
    }
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
      bootstrap: this.#isKubeadm
        ? { configRef: referenceTo(kubeadmKinds.configTemplate, namespace) }
        : { dataSecretName: bootstrapSecret },
      infrastructureRef: referenceTo(testKinds.machineTemplate, name),
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
   * @throws Error naming `what` after four minutes: four control planes may share two processors.
   */
  async until(what: string, probe: () => Promise<boolean>): Promise<void> {
    const deadline = this.clock.monotonic() + waitMs
    while (!(await probe())) {
      if (this.clock.monotonic() > deadline) throw new Error(`not within ${waitMs / 1000} s: ${what}`)
      await this.clock.sleep(pollMs)
    }
  }

  /** The Machines of the control plane of {@link fleet}; none if it has no KubeadmControlPlane. */
  async controlPlaneMachines(): Promise<readonly Machine[]> {
    const machines = await this.client.list(capiKinds.machine, { namespace: fleet })
    return machines.filter(isControlPlane)
  }

  /**
   * Ends all faults, deletes all MachineDeployments and waits until their Machines are gone; those of a control
   * plane stay.
   */
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
      const controlPlane = await this.controlPlaneMachines()
      return lists.flat().length === controlPlane.length
    })
    for (const { metadata } of await this.client.list(testKinds.machineTemplate))
      await ignoringGone(this.client.delete(testKinds.machineTemplate, keyOf(metadata)))
  }

  /** Stops everything and uninstalls Cluster API; nodes of remaining Machines stay. */
  async close(): Promise<void> {
    await this.infrastructure.stop()
    if (this.#isKubeadm) await uninitialize(this.workload)
    await this.#managers.stop()
    await uninstall(this.client, this.#managers.manifests)
    this.#managers.close()
    this.#close()
  }
}
