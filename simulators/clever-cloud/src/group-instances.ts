/** The instances of NodeGroups. */
import { kinds, type Node, type Taint } from '@tenon/api'
import type { KubeletHandle, KubeletRunner, KubeletSpec, LocalApi } from '@tenon/devcluster'
import { type Random, uuid } from '@tenon/runtime'
import { type FlavorSize, platformLabels, sharedSize } from '@tenon/provider-clever-cloud'

/** An instance of a group, from the moment when its group is accepted. Times are monotonic. */
export interface GroupInstance {
  /** Name of its Node. */
  readonly nodeName: string
  readonly number: number
  readonly flavor: FlavorSize
  /** When its kubelet starts; undefined = never. */
  readonly bootsAtMs: number | undefined
  /** When it is removed, if that is planned. */
  leavesAtMs: number | undefined
  kubelet: KubeletHandle | undefined
  /** Whether its node has been ready. */
  hasJoined: boolean
}

/** Properties of a node besides its size. */
export interface NodeTraits {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly isNeverReady: boolean
  /** The share of the memory that the guest sees, in percent. */
  readonly memoryPercent: number
}

const reservedMemoryKi = 100 * 1024

/** Boots and removes instances. */
export class InstanceHost {
  readonly #api: LocalApi
  readonly #kubelets: KubeletRunner
  readonly #random: Random
  readonly #kubeletVersion: string
  #addresses = 0

  constructor(parts: {
    readonly api: LocalApi
    readonly kubelets: KubeletRunner
    readonly random: Random
    readonly kubernetesVersion: string
  }) {
    this.#api = parts.api
    this.#kubelets = parts.kubelets
    this.#random = parts.random
    this.#kubeletVersion = `v${parts.kubernetesVersion}`
  }

  /** Starts the kubelet. An existing Node is kept. */
  boot(instance: Pick<GroupInstance, 'nodeName' | 'flavor'>, traits: NodeTraits): KubeletHandle {
    const { nodeName } = instance
    const known = this.node(nodeName)
    const address = known?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
    return this.#kubelets.start({
      nodeName,
      // The platform never sets it.
      providerId: '',
      ...traits,
      ...sizeOf(instance.flavor, traits.memoryPercent),
      addresses: [{ type: 'InternalIP', address: address ?? this.#freeAddress() }],
      kubeletVersion: this.#kubeletVersion,
      systemUuid: known?.status?.nodeInfo?.['systemUUID'] ?? uuid(this.#random),
      ...(traits.isNeverReady && { neverReady: true }),
    })
  }

  /** Cuts the instance's power at once; its Node stays. */
  cut(instance: GroupInstance): void {
    instance.kubelet?.stop()
    instance.kubelet = undefined
  }

  /** The node reports that it is shutting down. */
  reportPowerOff(nodeName: string): void {
    const { conditions = [] } = this.node(nodeName)?.status ?? {}
    if (conditions.length === 0) return
    const last = { status: 'False', reason: 'KubeletNotReady', message: 'node is shutting down' }
    const changed = conditions.map((each) => (each.type === 'Ready' ? { ...each, ...last } : each))
    this.#api.patch(kinds.node, undefined, nodeName, { status: { conditions: changed } }, 'status')
  }

  node(name: string): Node | undefined {
    return this.#api.get(kinds.node, undefined, name)
  }

  isReady({ kubelet, nodeName }: GroupInstance): boolean {
    const { conditions = [] } = (kubelet && this.node(nodeName))?.status ?? {}
    return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  }

  /** Deletes a Node unless it is being deleted; finalizers may delay it. Returns whether it is gone. */
  removeNode(name: string): boolean {
    const node = this.node(name)
    if (node === undefined) return true
    if (node.metadata.deletionTimestamp === undefined) this.#api.delete(kinds.node, undefined, name)
    return this.node(name) === undefined
  }

  #freeAddress(): string {
    const taken = new Set(
      this.#api.list(kinds.node).flatMap(({ status }) => status?.addresses?.map(({ address }) => address)),
    )
    for (;;) {
      const number = this.#addresses++
      const address = `10.8.${(number >> 8) & 255}.${number & 255}`
      if (!taken.has(address)) return address
    }
  }
}

/** Labels that the platform sets on a worker. */
export function workerLabels(group: string, flavor: string): Readonly<Record<string, string>> {
  return {
    [platformLabels.nodeGroup]: group,
    [platformLabels.flavor]: flavor,
    [platformLabels.role]: 'worker',
  }
}

function sizeOf(
  { cpu, memoryKi }: FlavorSize,
  memoryPercent: number,
): Pick<KubeletSpec, 'capacity' | 'allocatable'> {
  const seenKi = Math.floor((memoryKi * memoryPercent) / 100)
  const shared = { cpu: String(cpu), pods: sharedSize.pods }
  return {
    capacity: { ...shared, memory: `${seenKi}Ki`, 'ephemeral-storage': sharedSize.ephemeralStorage },
    allocatable: {
      ...shared,
      memory: `${seenKi - reservedMemoryKi}Ki`,
      'ephemeral-storage': sharedSize.allocatableEphemeralStorage,
    },
  }
}
