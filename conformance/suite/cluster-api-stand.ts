/**
 * Tenon on real Cluster API: MachineDeployments of three types, pods for them, and `tenon controller` as a
 * process.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { conditionOf, karpenterKinds, type KubeObject, kinds, type NodeClaim, type Pod } from '@tenon/api'
import { clusterAPINodeClassKind } from '@tenon/provider-cluster-api'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import { clusterApiAccount } from '../src/audit.ts'
import { ClusterApiHub, fleet } from '../src/cluster-api/hub.ts'
import { ignoringGone, keyOf, tearOut } from '../src/cluster-api/installation.ts'
import { capiKinds, type Machine } from '../src/cluster-api/kinds.ts'
import { applyCrds } from '../src/scheduling-proof/autoscaler.ts'
import { deployment, proofKinds } from '../src/scheduling-proof/objects.ts'
import type { sharedControlPlane } from './cluster.ts'
import { Controller } from './tenon.ts'

type ControlPlane = Pick<Awaited<ReturnType<typeof sharedControlPlane>>, 'binDir' | 'kubeconfigPath'>

/** Instance types, and how many pods fill some machines of each. */
export const sizes = [
  { name: 'small', cpu: '2', memory: '4Gi', price: '0.05', pods: 10, podCpu: '900m' },
  { name: 'medium', cpu: '4', memory: '8Gi', price: '0.11', pods: 20, podCpu: '900m' },
  { name: 'large', cpu: '8', memory: '16Gi', price: '0.23', pods: 10, podCpu: '1500m' },
] as const
export const podCount: number = sizes.reduce((sum, { pods }) => sum + pods, 0)
/** MachineDeployments that are not Tenon's; the second has the label in its template only. */
export const foreign = ['theirs', 'half'] as const
const member = { 'node.cluster.x-k8s.io/karpenter-member': '' }

export interface StandOptions {
  /** Of the workload cluster. */
  readonly controlPlane: ControlPlane
  /** Of the management cluster, if it is a separate one. */
  readonly hubControlPlane?: ControlPlane
  /** Environment variables of the controller. */
  readonly environment?: Readonly<Record<string, string>>
}

export class ClusterApiStand {
  readonly hub: ClusterApiHub
  readonly controller: Controller
  readonly #folder: string

  private constructor(hub: ClusterApiHub, controller: Controller, folder: string) {
    this.hub = hub
    this.controller = controller
    this.#folder = folder
  }

  /**
   * Starts Cluster API with MachineDeployments of Tenon and of others, and a NodePool; does not start the
   * controller.
   */
  static async open(options: StandOptions): Promise<ClusterApiStand> {
    const { controlPlane, hubControlPlane, environment = {} } = options
    const { kubeconfigPath: workloadKubeconfigPath } = controlPlane
    const { kubeconfigPath } = hubControlPlane ?? controlPlane
    const hub = await ClusterApiHub.open({ kubeconfigPath, workloadKubeconfigPath })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-api-'))
    const own = join(folder, 'kubeconfig')
    writeAccount(controlPlane, own)
    const controller = new Controller(
      own,
      join(folder, 'controller.log'),
      { DISABLE_LEADER_ELECTION: 'true', ...environment },
      clusterApi.name,
    )
    const stand = new ClusterApiStand(hub, controller, folder)
    try {
      await stand.#prepare()
    } catch (error) {
      await stand.close()
      throw error
    }
    return stand
  }

  /** The last lines of the controller's log. */
  endOfLog(): string {
    return `${readFileSync(join(this.#folder, 'controller.log'), 'utf8').split('\n').slice(-40).join('\n')}\n`
  }

  /** Creates a Deployment for each type. */
  async fill(): Promise<void> {
    for (const { name, pods, podCpu } of sizes)
      await this.addPods(name, pods, podCpu, { 'node.kubernetes.io/instance-type': name })
  }

  /** Creates a Deployment in the namespace `default`. */
  async addPods(
    name: string,
    replicas: number,
    cpu: string,
    nodeSelector: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const requests = { cpu, memory: '256Mi' }
    const { type, object } = deployment(replicas, {
      namespace: 'default',
      name,
      requests,
      spec: { nodeSelector },
    })
    await this.hub.workload.create(type, object)
  }

  /** Scales all Deployments. */
  async scalePods(replicas: number): Promise<void> {
    const { workload } = this.hub
    for (const { metadata } of await workload.list<KubeObject>(proofKinds.deployment))
      await workload.patch(proofKinds.deployment, keyOf(metadata), { spec: { replicas } })
  }

  pods(): Promise<readonly Pod[]> {
    return this.hub.workload.list(kinds.pod, { namespace: 'default' })
  }

  claims(): Promise<readonly NodeClaim[]> {
    return this.hub.workload.list(karpenterKinds.nodeClaim)
  }

  /** Machines of Tenon's MachineDeployments. */
  async machines(): Promise<readonly Machine[]> {
    const lists = await Promise.all(sizes.map(({ name }) => this.hub.machines(name)))
    return lists.flat()
  }

  async until(what: string, probe: () => Promise<boolean>): Promise<void> {
    await this.hub.until(what, async () => {
      this.controller.assertRunning()
      return probe()
    })
  }

  /** Waits until this many pods run, and everything has settled. */
  async untilRunning(count: number): Promise<void> {
    await this.until(`${count} pods run`, async () => {
      const pods = await this.pods()
      return pods.length === count && pods.every(isReady)
    })
    await this.until('NodeClaims and Machines are at rest', async () => {
      const [claims, machines] = await Promise.all([this.claims(), this.machines()])
      const isInitialized = (claim: NodeClaim) => conditionOf(claim, 'Initialized')?.status === 'True'
      return claims.length === machines.length && claims.every(isInitialized)
    })
  }

  /** Waits until nothing of Tenon's is left. */
  async untilEmpty(): Promise<void> {
    await this.until('pods, NodeClaims, Machines and their nodes are gone', async () => {
      const lists = await Promise.all([this.pods(), this.claims(), this.machines()])
      const nodes = await this.hub.workload.list(kinds.node)
      const own = nodes.filter(({ metadata }) =>
        sizes.some(({ name }) => metadata.name.startsWith(`${name}-`)),
      )
      return lists.every((list) => list.length === 0) && own.length === 0
    })
  }

  /** Invariants of every settled state: as many replicas as Machines, and each Machine has one NodeClaim. */
  async assertExact(): Promise<void> {
    for (const { name } of sizes) {
      const machines = await this.hub.machines(name)
      const found = await this.hub.client.get(capiKinds.machineDeployment, { namespace: fleet, name })
      assert.equal(found?.spec.replicas, machines.length, `replicas of ${name}`)
    }
    const ids = (await this.machines()).map(({ spec }) => spec.providerID ?? '')
    const ofClaims = (await this.claims()).map(({ status }) => status?.providerID ?? '')
    assert.deepEqual(ofClaims.toSorted(byText), ids.toSorted(byText))
    assert.equal(new Set(ids).size, ids.length, 'no Machine belongs to two claims')
  }

  async close(): Promise<void> {
    await this.controller.end('SIGTERM')
    const { workload } = this.hub
    const own = [
      karpenterKinds.nodePool,
      karpenterKinds.nodeClaim,
      clusterAPINodeClassKind,
      proofKinds.deployment,
    ]
    for (const type of own) await tearOut(workload, type)
    for (const { metadata } of await workload.list(kinds.node))
      await ignoringGone(workload.patch(kinds.node, keyOf(metadata), { metadata: { finalizers: null } }))
    try {
      await this.hub.clear()
    } finally {
      await this.hub.close()
      rmSync(this.#folder, { recursive: true, force: true })
    }
  }

  async #prepare(): Promise<void> {
    const { hub } = this
    for (const { name, cpu, memory, price } of sizes) {
      const nodeLabels = { 'node.kubernetes.io/instance-type': name, 'topology.kubernetes.io/zone': 'a' }
      const told = Object.entries(nodeLabels).map(([key, value]) => `${key}=${value}`)
      await hub.addMachineDeployment({
        name,
        labels: member,
        annotations: {
          'capacity.cluster-autoscaler.kubernetes.io/labels': told.join(','),
          'cluster.x-k8s.io/machine-current-price': price,
        },
        capacity: { cpu, memory, pods: '110', 'ephemeral-storage': '20Gi' },
        nodeLabels,
      })
    }
    for (const name of foreign)
      await hub.addMachineDeployment({
        name,
        replicas: 1,
        ...(name === 'half' && { template: { labels: member } }),
      })
    await applyCrds(hub.workload, hub.clock, await clusterApi.crds())
    const nodeClassRef = {
      group: clusterAPINodeClassKind.group,
      kind: clusterAPINodeClassKind.kind,
      name: 'default',
    }
    await hub.workload.create(clusterAPINodeClassKind, {
      apiVersion: `${clusterAPINodeClassKind.group}/${clusterAPINodeClassKind.version}`,
      kind: clusterAPINodeClassKind.kind,
      metadata: { name: 'default' },
      spec: {},
    })
    await hub.workload.create(karpenterKinds.nodePool, {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'default' },
      spec: {
        disruption: {
          consolidationPolicy: 'WhenEmpty',
          consolidateAfter: '1s',
          budgets: [{ nodes: '100%' }],
        },
        template: {
          spec: {
            expireAfter: 'Never',
            nodeClassRef,
            requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'Exists' }],
          },
        },
      },
    })
    for (const name of foreign) await hub.untilRunning(name, 1)
  }
}

/**
 * A kubeconfig of a service account that has all rights and whose requests are in the audit log.
 * @param server address of the API server, if not its own.
 */
export function writeAccount({ binDir, kubeconfigPath }: ControlPlane, file: string, server?: string): void {
  const [, , namespace = '', name = ''] = clusterApiAccount.split(':')
  const kubectl = (...args: readonly string[]) =>
    execFileSync(join(binDir, 'kubectl'), ['--kubeconfig', kubeconfigPath, ...args], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  const quietly = (...args: readonly string[]) => {
    try {
      kubectl(...args)
    } catch (error) {
      if (!(error instanceof Error && /AlreadyExists|already exists/.test(error.message))) throw error
    }
  }
  quietly('create', 'serviceaccount', name, '-n', namespace)
  quietly(
    'create',
    'clusterrolebinding',
    'tenon-test',
    '--clusterrole=cluster-admin',
    `--serviceaccount=${namespace}:${name}`,
  )
  const token = kubectl('create', 'token', name, '-n', namespace).trim()
  const config = new KubeConfig()
  config.loadFromFile(kubeconfigPath)
  const cluster = config.getCurrentCluster()
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: { server: server ?? cluster?.server, 'certificate-authority-data': cluster?.caData },
      },
    ],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(file, JSON.stringify(document), { mode: 0o600 })
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true

const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b))
