/** `tenon cluster-autoscaler` on real Cluster API, as a user of Cluster Autoscaler's example manifest runs it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigMap, type KubeObject, kinds, type Lease, type Node, type Pod } from '@tenon/api'
import { ClusterApiHub, fleet } from '../src/cluster-api/hub.ts'
import { type ClusterRole, clusterRoleKind, exampleRights } from '../src/cluster-api/example-rights.ts'
import { ignoringGone, keyOf, tearOut } from '../src/cluster-api/installation.ts'
import { capiKinds, type Machine } from '../src/cluster-api/kinds.ts'
import { MachineHistory } from '../src/cluster-api/machine-history.ts'
import { webhookKind } from '../src/cluster-api/manifests.ts'
import { ClusterAutoscalerProcess } from '../src/cluster-autoscaler-process.ts'
import { deployment, proofKinds } from '../src/scheduling-proof/objects.ts'

/** All arguments of the example manifest; with TENON_EXAMPLE_ARGUMENTS=only no others are given. */
const exampleArgs = ['--cloud-provider=clusterapi']
/** Times that a test can wait for. */
const testArgs = [
  '--address=127.0.0.1:0',
  '--scan-interval=1s',
  '--scale-down-delay-after-add=4s',
  '--unremovable-node-recheck-timeout=2s',
  '--kube-client-qps=25',
  '--kube-client-burst=50',
]
const args = process.env['TENON_EXAMPLE_ARGUMENTS'] === 'only' ? exampleArgs : [...exampleArgs, ...testArgs]
const capacity = 'capacity.cluster-autoscaler.kubernetes.io'
const minSize = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size'
const maxSize = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'
/** Instead of the flag, whose default is 10 minutes. */
const unneededTime = 'cluster.x-k8s.io/autoscaling-options-scaledownunneededtime'
const machineCapacity = { cpu: '4', memory: '16Gi', pods: '110', 'ephemeral-storage': '20Gi' }

const brokenWebhook = 'tenon-broken'

interface Group {
  readonly name: string
  readonly min: string
  readonly max: string
  readonly replicas?: number
}

type Event = KubeObject & { readonly reason?: string; readonly message?: string }

export class ClusterApiAutoscalerStand {
  readonly hub: ClusterApiHub
  readonly history: MachineHistory
  readonly autoscaler: ClusterAutoscalerProcess
  readonly #folder: string

  private constructor(hub: ClusterApiHub, autoscaler: ClusterAutoscalerProcess, folder: string) {
    this.hub = hub
    this.history = new MachineHistory(hub.client, hub.clock)
    this.autoscaler = autoscaler
    this.#folder = folder
  }

  /**
   * Starts Cluster API with kubeadm's providers, in a cluster that has the nodes of a control plane at most; does not
   * start the autoscaler.
   */
  static async open(controlPlane: {
    readonly kubeconfigPath: string
    readonly binDir: string
  }): Promise<ClusterApiAutoscalerStand> {
    const hub = await ClusterApiHub.open({ kubeconfigPath: controlPlane.kubeconfigPath, isKubeadm: true })
    hub.infrastructure.startupTaints = []
    const folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-api-'))
    const autoscaler = new ClusterAutoscalerProcess({
      controlPlane,
      folder,
      args,
      environment: {},
      rights: exampleRights,
    })
    return new ClusterApiAutoscalerStand(hub, autoscaler, folder)
  }

  /** Adds a group whose nodes have the label `pool`; its annotations also tell what they have. */
  async addGroup(
    { name, min, max, replicas = 0 }: Group,
    kind: 'MachineDeployment' | 'MachineSet' | 'topology' = 'MachineDeployment',
  ): Promise<void> {
    const annotations = {
      [minSize]: min,
      [maxSize]: max,
      [unneededTime]: '4s',
      [`${capacity}/cpu`]: machineCapacity.cpu,
      [`${capacity}/memory`]: machineCapacity.memory,
      [`${capacity}/labels`]: `pool=${name}`,
    }
    const parts = { name, replicas, annotations, capacity: machineCapacity, nodeLabels: { pool: name } }
    if (kind === 'topology') await this.hub.addTopology(parts)
    else if (kind === 'MachineSet') await this.hub.addMachineSet(parts)
    else await this.hub.addMachineDeployment(parts)
  }

  /** Creates a Deployment for the nodes of a group; four of its pods fit on one. */
  async addPods(group: string, replicas: number): Promise<void> {
    const requests = { cpu: '900m', memory: '256Mi' }
    const spec = { nodeSelector: { pool: group } }
    const { type, object } = deployment(replicas, { namespace: 'default', name: group, requests, spec })
    await this.hub.workload.create(type, object)
  }

  async scalePods(group: string, replicas: number): Promise<void> {
    const key = { namespace: 'default', name: group }
    await this.hub.workload.patch(proofKinds.deployment, key, { spec: { replicas } })
  }

  /** Running pods of a group that are not being deleted. Pods of a node that has gone count as running for a while. */
  async running(group: string): Promise<number> {
    const labelSelector = { matchLabels: { app: group } }
    const pods = await this.hub.workload.list<Pod>(kinds.pod, { namespace: 'default', labelSelector })
    const nodes = new Set((await this.hub.workload.list(kinds.node)).map(({ metadata }) => metadata.name))
    return pods.filter(
      ({ status, spec, metadata }) =>
        status?.phase === 'Running' &&
        metadata.deletionTimestamp === undefined &&
        nodes.has(spec.nodeName ?? ''),
    ).length
  }

  /** Whether this many pods run of each group. */
  async areRunning(counts: Readonly<Record<string, number>>): Promise<boolean> {
    const found = await Promise.all(Object.keys(counts).map((group) => this.running(group)))
    return Object.values(counts).every((count, at) => found[at] === count)
  }

  async machines(group: string): Promise<readonly Machine[]> {
    const machines = await this.hub.client.list(capiKinds.machine)
    const names = ['cluster.x-k8s.io/deployment-name', 'cluster.x-k8s.io/set-name']
    return machines.filter(({ metadata }) => names.some((name) => metadata.labels?.[name] === group))
  }

  async replicas(name: string): Promise<number | undefined> {
    return (await this.hub.client.get(capiKinds.machineDeployment, { namespace: fleet, name }))?.spec.replicas
  }

  /** Nodes of workers. */
  async workers(): Promise<readonly Node[]> {
    return (await this.hub.workload.list(kinds.node)).filter((node) => !isOfControlPlane(node))
  }

  node(name: string): Promise<Node | undefined> {
    return this.hub.workload.get(kinds.node, { name })
  }

  lease(): Promise<Lease | undefined> {
    return this.hub.workload.get(kinds.lease, { namespace: 'kube-system', name: 'cluster-autoscaler' })
  }

  /** The text of the status ConfigMap. */
  async status(): Promise<string> {
    const key = { namespace: 'kube-system', name: 'cluster-autoscaler-status' }
    const map: ConfigMap | undefined = await this.hub.workload.get(kinds.configMap, key)
    return map?.data?.['status'] ?? ''
  }

  /** Texts of all events, with their reasons. */
  async events(): Promise<readonly string[]> {
    const events: readonly Event[] = await this.hub.workload.list(kinds.event)
    return events.map(({ reason = '', message = '' }) => `${reason}: ${message}`)
  }

  /** Takes a right from the account, or gives it back. */
  async setRole(role: ClusterRole): Promise<void> {
    await this.hub.client.patch(clusterRoleKind, { name: role.metadata.name }, { rules: role.rules })
  }

  /** From here on the API server answers each write of this MachineDeployment with 500. */
  async breakWrites(name: string): Promise<void> {
    const webhook = {
      name: 'broken.tenon.test',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      timeoutSeconds: 1,
      // Nobody listens there.
      clientConfig: { url: 'https://127.0.0.1:1/' },
      matchConditions: [{ name: 'name', expression: `request.name == '${name}'` }],
      rules: [
        {
          apiGroups: ['cluster.x-k8s.io'],
          apiVersions: ['*'],
          operations: ['UPDATE'],
          resources: ['machinedeployments', 'machinedeployments/scale'],
        },
      ],
    }
    const object = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: brokenWebhook },
      webhooks: [webhook],
    }
    await this.hub.client.create(webhookKind(object), object)
  }

  /** The autoscaler ends without a warning, and another one starts. */
  async kill(): Promise<void> {
    await this.autoscaler.end('SIGKILL')
    this.autoscaler.start()
  }

  async until(what: string, probe: () => Promise<boolean>): Promise<void> {
    await this.hub.until(what, async () => {
      this.autoscaler.assertRunning()
      return probe()
    })
  }

  /** The token with which a Machine's bootstrap data let its kubelet join; undefined if they do not. */
  async joinToken({ metadata, spec }: Machine): Promise<string | undefined> {
    const { namespace = '' } = metadata
    const key = { namespace, name: spec.bootstrap.dataSecretName ?? '' }
    const secret = await this.hub.client.get(kinds.secret, key)
    const userData = Buffer.from(secret?.data?.['value'] ?? '', 'base64').toString()
    return /kubeadm join/.test(userData) ? /token: (\S+)/.exec(userData)?.[1] : undefined
  }

  /**
   * Waits until each Machine has its Node, each Node its Machine, and each group as many Machines as replicas: a surplus
   * node may be on its way out.
   */
  async untilExact(): Promise<void> {
    const isExact = () =>
      this.#assertExact().then(
        () => true,
        () => false,
      )
    await this.until('Machines, Nodes and replicas agree', isExact).catch(() => this.#assertExact())
  }

  async #assertExact(): Promise<void> {
    const machines = await this.hub.client.list(capiKinds.machine)
    const nodes = await this.hub.workload.list(kinds.node)
    assert.equal(machines.length, nodes.length)
    assert.deepEqual(
      new Set(machines.map(({ status }) => status?.nodeRef?.name)),
      new Set(nodes.map(({ metadata }) => metadata.name)),
    )
    for (const { metadata, spec } of await this.hub.client.list(capiKinds.machineDeployment))
      assert.equal(spec.replicas, (await this.machines(metadata.name)).length, metadata.name)
  }

  /** The last lines of the autoscaler's log. */
  endOfLog(): string {
    return `${this.autoscaler.log().split('\n').slice(-60).join('\n')}\n`
  }

  async close(): Promise<void> {
    await this.autoscaler.end('SIGTERM')
    await this.history.stop()
    const { workload, client } = this.hub
    await ignoringGone(
      client.delete(webhookKind({ kind: 'ValidatingWebhookConfiguration' }), { name: brokenWebhook }),
    )
    for (const type of [proofKinds.deployment, kinds.podDisruptionBudget]) await tearOut(workload, type)
    await tearOut(client, capiKinds.machineHealthCheck)
    try {
      await this.hub.clear()
    } finally {
      await this.hub.close()
      rmSync(this.#folder, { recursive: true, force: true })
    }
    for (const { metadata } of await workload.list(kinds.node))
      await ignoringGone(workload.delete(kinds.node, keyOf(metadata)))
  }
}

const isOfControlPlane = ({ metadata }: Node): boolean =>
  metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined
