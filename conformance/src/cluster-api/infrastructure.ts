/**
 * The tests' own infrastructure provider: creates an instance and a Node for each TestMachine. It follows
 * Cluster API's contract for infrastructure machines, and can be slow or fail.
 */
import { type KubeObject, kinds, type Node, type ResourceType, type Secret, type Taint } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { ignoringGone, ignoringPresent } from './installation.ts'
import { capiKinds, isControlPlane, type TestMachine, testKinds } from './kinds.ts'
import { initialize, runStaticPods } from './kubeadm.ts'
import { bootstrapSecret } from './workload-cluster.ts'

/** Duration of each step in milliseconds. */
export interface Pace {
  /** Until the instance has its provider ID. */
  readonly launchMs: number
  /** From then until the kubelet registers. */
  readonly bootMs: number
  /** From the machine's deletion until the instance is gone. */
  readonly terminateMs: number
}

/** `noCapacity`: no instance is available. `neverJoins`: it runs, but its kubelet does not register. */
export type Fault = 'noCapacity' | 'neverJoins'

interface Reporting extends KubeObject {
  readonly status?: { readonly initialization?: object }
}

/** With what an instance boots. */
interface Bootstrap {
  /** Kubernetes version of its Machine. */
  readonly version: string
  readonly userData: string
}

interface Instance {
  /** When it was first seen, in monotonic time. */
  readonly seenAt: number
  bootstrap?: Bootstrap
  launchedAt?: number
  terminatedAt?: number
  hasJoined: boolean
  isRefused: boolean
}

const pollMs = 100
const finalizer = 'infrastructure.tenon.test/instance'
/** kubeadm's bootstrap data ask for it; Cluster API's controllers remove it once they have set the Node's labels. */
const uninitializedTaint: Taint = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }

export class TestInfrastructure {
  pace: Pace = { launchMs: 200, bootMs: 300, terminateMs: 200 }
  /** With which workers register besides those of their template; the default is that of Karpenter's nodes. */
  startupTaints: readonly Taint[] = [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }]
  /** Faults of all unfinished machines of a MachineDeployment, by its name. */
  readonly faults = new Map<string, Fault>()
  /** Unexpected errors; failed requests are retried and do not count. */
  readonly complaints: string[] = []
  readonly #hub: KubeClient
  readonly #workload: KubeClient
  readonly #clock: Clock
  readonly #instances = new Map<string, Instance>()
  #end: AbortController | undefined
  #running: Promise<void> | undefined

  constructor(hub: KubeClient, workload: KubeClient, clock: Clock) {
    this.#hub = hub
    this.#workload = workload
    this.#clock = clock
  }

  start(): void {
    const end = new AbortController()
    this.#end = end
    this.#running = this.#run(end.signal)
  }

  async stop(): Promise<void> {
    this.#end?.abort()
    await this.#running
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round().catch((error: unknown) => this.#complain(error))
      await this.#clock.sleep(pollMs, signal).catch(() => {})
    }
  }

  async #round(): Promise<void> {
    const machines = await this.#hub.list(testKinds.machine)
    const steps = machines.map((machine) =>
      this.#step(machine).catch((error: unknown) => this.#complain(error)),
    )
    await Promise.all([...steps, this.#provision()])
  }

  /** What a ClusterClass has cloned is there at once; a control plane has the version that it is to have. */
  async #provision(): Promise<void> {
    const report = (type: ResourceType, object: KubeObject, status: object) =>
      this.#hub.patch(type, keyOf(object), { status }, { subresource: 'status' })
    for (const each of await this.#hub.list<Reporting>(testKinds.cluster))
      if (each.status?.initialization === undefined)
        await report(testKinds.cluster, each, { initialization: { provisioned: true } })
    for (const each of await this.#hub.list<Reporting>(testKinds.bootstrap))
      if (each.status?.initialization === undefined)
        await report(testKinds.bootstrap, each, {
          dataSecretName: bootstrapSecret,
          initialization: { dataSecretCreated: true },
        })
    for (const each of await this.#hub.list(testKinds.controlPlane)) {
      const { version } = each.spec
      if (version !== undefined && each.status?.version !== version)
        await report(testKinds.controlPlane, each, {
          version,
          initialization: { controlPlaneInitialized: true },
          externalManagedControlPlane: true,
        })
    }
  }

  /** Advances a machine by as many steps as possible; the next round continues. */
  async #step(machine: TestMachine): Promise<void> {
    const { uid = '', deletionTimestamp, finalizers, ownerReferences } = machine.metadata
    const now = this.#clock.monotonic()
    const instance = this.#instances.get(uid) ?? { seenAt: now, hasJoined: false, isRefused: false }
    this.#instances.set(uid, instance)
    if (deletionTimestamp !== undefined) return this.#terminate(machine, instance)
    // An instance that its Machine does not know belongs to nobody: a controller that crashes in between must
    // not use it otherwise.
    if (ownerReferences?.some(({ kind }) => kind === 'Machine') !== true) return
    if (finalizers?.includes(finalizer) !== true) {
      await this.#hub.patch(testKinds.machine, keyOf(machine), { metadata: { finalizers: [finalizer] } })
    }
    if (machine.status?.initialization?.provisioned !== true) return this.#launch(machine, instance)
    instance.launchedAt ??= now
    if (instance.hasJoined || now - instance.launchedAt < this.pace.bootMs) return
    if (this.#faultOf(machine) === undefined) await this.#join(machine, instance)
  }

  async #launch(machine: TestMachine, instance: Instance): Promise<void> {
    if (this.#clock.monotonic() - instance.seenAt < this.pace.launchMs) return
    const bootstrap = instance.bootstrap ?? (await this.#bootstrapOf(machine))
    if (bootstrap === undefined) return
    instance.bootstrap = bootstrap
    const key = keyOf(machine)
    if (this.#faultOf(machine) === 'noCapacity') {
      if (instance.isRefused) return
      instance.isRefused = true
      const conditions = [this.#ready('False', 'NoCapacity', 'no instance of this kind is to be had')]
      await this.#hub.patch(testKinds.machine, key, { status: { conditions } }, { subresource: 'status' })
      return
    }
    if (bootstrap.userData.includes('kubeadm init')) await initialize(this.#workload, bootstrap.version)
    await this.#hub.patch(testKinds.machine, key, { spec: { providerID: providerIdOf(machine) } })
    const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
    const conditions = [this.#ready('True', 'Provisioned', '')]
    const status = { initialization: { provisioned: true }, addresses, conditions }
    await this.#hub.patch(testKinds.machine, key, { status }, { subresource: 'status' })
  }

  /** Undefined until the bootstrap provider has generated the data. */
  async #bootstrapOf({ metadata }: TestMachine): Promise<Bootstrap | undefined> {
    const { namespace = '', ownerReferences = [] } = metadata
    const { name = '' } = ownerReferences.find(({ kind }) => kind === 'Machine') ?? {}
    const { spec } = (await this.#hub.get(capiKinds.machine, { namespace, name })) ?? {}
    if (spec?.bootstrap.dataSecretName === undefined) return undefined
    const key = { namespace, name: spec.bootstrap.dataSecretName }
    const secret: Secret | undefined = await this.#hub.get(kinds.secret, key)
    if (secret === undefined) return undefined
    const userData = Buffer.from(secret.data?.['value'] ?? '', 'base64').toString()
    return { version: spec.version ?? '', userData }
  }

  /** Acts as kubelet: registers once, with its configuration. */
  async #join(machine: TestMachine, instance: Instance): Promise<void> {
    const { name } = machine.metadata
    const { capacity = {}, nodeLabels, nodeTaints = [] } = machine.spec
    const { userData = '', version = '' } = instance.bootstrap ?? {}
    const kubeadmTaints = userData.includes(uninitializedTaint.key) ? [uninitializedTaint] : []
    const labels = {
      'kubernetes.io/hostname': name,
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
      ...nodeLabels,
    }
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
      spec: {
        providerID: providerIdOf(machine),
        taints: [...(isControlPlane(machine) ? [] : this.startupTaints), ...nodeTaints, ...kubeadmTaints],
      },
      status: { capacity, allocatable: capacity, nodeInfo: { kubeletVersion: version } },
    }
    await ignoringPresent(this.#workload.create(kinds.node, node))
    if (isControlPlane(machine)) await runStaticPods(this.#workload, name)
    instance.hasJoined = true
  }

  async #terminate(machine: TestMachine, instance: Instance): Promise<void> {
    const now = this.#clock.monotonic()
    instance.terminatedAt ??= now
    if (now - instance.terminatedAt < this.pace.terminateMs) return
    await ignoringGone(this.#hub.patch(testKinds.machine, keyOf(machine), { metadata: { finalizers: null } }))
    this.#instances.delete(machine.metadata.uid ?? '')
  }

  #faultOf({ metadata }: TestMachine): Fault | undefined {
    return this.faults.get(metadata.labels?.['cluster.x-k8s.io/deployment-name'] ?? '')
  }

  #ready(status: string, reason: string, message: string): object {
    return { type: 'Ready', status, reason, message, lastTransitionTime: rfc3339(this.#clock.now()) }
  }

  #complain(error: unknown): void {
    if (isKubeError(error)) return
    this.complaints.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
}

/** As in the machine and its Node. */
function providerIdOf({ metadata }: TestMachine): string {
  return `tenon-test://${metadata.namespace}/${metadata.name}`
}

function keyOf({ metadata }: KubeObject) {
  return { namespace: metadata.namespace ?? '', name: metadata.name }
}
