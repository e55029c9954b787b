/** Boots and removes machines as nodes of the workload cluster. */
import {
  type KubeObject,
  kinds,
  type Node,
  ownValue,
  type ResourceList,
  type ResourceType,
  type Taint,
} from '@tenon/api'
import type { KubeletRunner, KubeletSpec, LocalApi } from '@tenon/devcluster'
import { type Random, uuid } from '@tenon/runtime'
import { capacityAnnotations, type ClusterApiNames } from '@tenon/provider-cluster-api'
import type { HubParts } from '../hub-parts.ts'
import type { FullMachine, MachineShape } from '../kinds.ts'
import { poolName } from '../machine-pools/pool-controller.ts'
import { effectOf } from '../faults.ts'
import type { MachineRecord } from './machine-record.ts'

const unregistered: Taint = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' }
const smallest: ResourceList = { cpu: '2', memory: '4Gi', 'ephemeral-storage': '20Gi', pods: '110' }

export interface RoomParts {
  /** API server of the workload cluster. */
  readonly workload: LocalApi
  readonly kubelets: KubeletRunner
  readonly random: Random
  readonly kubernetesVersion: string
}

export class MachineRoom {
  readonly #hub: HubParts
  readonly #parts: RoomParts
  #addresses = 0

  constructor(hub: HubParts, parts: RoomParts) {
    this.#hub = hub
    this.#parts = parts
  }

  /** Starts the kubelet; its Node has the name of the Machine. An existing Node is kept. */
  boot(record: MachineRecord, machine: FullMachine): void {
    const { kubelets, kubernetesVersion, random, workload } = this.#parts
    const known = workload.get(kinds.node, undefined, record.name)?.status
    const address = known?.addresses?.find(({ type }) => type === 'InternalIP')?.address
    record.kubelet = kubelets.start({
      nodeName: record.name,
      providerId: machine.spec?.providerID ?? '',
      ...traitsOf(machine, this.#shapeOf(machine), this.#ownerOf(machine), this.#hub.names),
      addresses: [{ type: 'InternalIP', address: address ?? this.#freeAddress() }],
      kubeletVersion: `v${(machine.spec?.version ?? kubernetesVersion).replace(/^v/, '')}`,
      systemUuid: known?.nodeInfo?.['systemUUID'] ?? uuid(random),
      ...(effectOf(record.effects, 'neverReady') !== undefined && { neverReady: true }),
    })
  }

  /** Cuts the machine's power at once; its Node stays. */
  cut(record: MachineRecord): void {
    record.kubelet?.stop()
    record.kubelet = undefined
  }

  /** Price of the Machine per hour, from the annotation of the object with its replicas; undefined without it. */
  priceOf(machine: FullMachine): number | undefined {
    const text = ownValue(this.#ownerOf(machine)?.metadata.annotations, this.#hub.names.price)
    const price = Number(text ?? Number.NaN)
    return Number.isFinite(price) ? price : undefined
  }

  node(name: string): Node | undefined {
    return this.#parts.workload.get(kinds.node, undefined, name)
  }

  /** Deletes a Node unless it is being deleted; finalizers may delay it. */
  removeNode(name: string): void {
    const node = this.node(name)
    if (node !== undefined && node.metadata.deletionTimestamp === undefined)
      this.#parts.workload.delete(kinds.node, undefined, name)
  }

  /** The MachineDeployment, MachineSet or MachinePool that users scale. */
  #ownerOf({ metadata }: FullMachine): KubeObject | undefined {
    const { api, kinds: served, names } = this.#hub
    const labelled: readonly (readonly [ResourceType, string])[] = [
      [served.deployment, names.deploymentName],
      [served.set, names.setName],
      [served.pool, poolName],
    ]
    for (const [type, label] of labelled) {
      const name = ownValue(metadata.labels, label)
      if (name !== undefined) return api.get(type, metadata.namespace, name)
    }
    return undefined
  }

  #shapeOf({ metadata, spec }: FullMachine): MachineShape {
    const { api, kinds: served } = this.#hub
    const name = spec?.infrastructureRef?.name
    const template = name === undefined ? undefined : api.get(served.template, metadata.namespace, name)
    return template?.spec?.template?.spec ?? {}
  }

  #freeAddress(): string {
    const taken = new Set(
      this.#parts.workload
        .list(kinds.node)
        .flatMap(({ status }) => status?.addresses?.map(({ address }) => address)),
    )
    for (;;) {
      const number = this.#addresses++
      const address = `10.9.${(number >> 8) & 255}.${number & 255}`
      if (!taken.has(address)) return address
    }
  }
}

type Traits = Pick<KubeletSpec, 'allocatable' | 'capacity' | 'labels' | 'taints'>

function traitsOf(
  { spec }: FullMachine,
  shape: MachineShape,
  owner: KubeObject | undefined,
  { uninitialized }: ClusterApiNames,
): Traits {
  const { architecture = 'amd64', operatingSystem = 'linux' } = shape
  const { joinsUninitialized = true, registersUnregistered = true } = shape
  const capacity = { ...smallest, ...(shape.capacity ?? annotatedCapacity(owner)) }
  const own = (spec?.taints ?? []).map(({ key, value, effect }) => ({
    key,
    effect,
    ...(value !== undefined && { value }),
  }))
  return {
    labels: {
      'kubernetes.io/arch': architecture,
      'kubernetes.io/os': operatingSystem,
      ...(shape.labels ?? annotatedLabels(owner)),
    },
    taints: [
      ...(registersUnregistered ? [unregistered] : []),
      ...(joinsUninitialized ? [{ key: uninitialized, effect: 'NoSchedule' } as const] : []),
      ...(shape.taints ?? []),
      ...own,
    ],
    capacity,
    allocatable: capacity,
  }
}

function annotatedCapacity(owner: KubeObject | undefined): ResourceList {
  const annotation = (key: string): string | undefined => ownValue(owner?.metadata.annotations, key)
  const { cpu, memory, ephemeralDisk, maxPods, gpuCount, gpuType } = capacityAnnotations
  const gpu = annotation(gpuType)
  const amounts: readonly (readonly [string, string | undefined])[] = [
    ['cpu', annotation(cpu)],
    ['memory', annotation(memory)],
    ['ephemeral-storage', annotation(ephemeralDisk)],
    ['pods', annotation(maxPods)],
    ...(gpu === undefined ? [] : [[gpu, annotation(gpuCount)] as const]),
  ]
  return Object.fromEntries(
    amounts.flatMap(([name, amount]) => (amount === undefined ? [] : [[name, amount]])),
  )
}

function annotatedLabels(owner: KubeObject | undefined): Readonly<Record<string, string>> {
  const text = ownValue(owner?.metadata.annotations, capacityAnnotations.labels) ?? ''
  const pairs = text.split(',').flatMap((part) => {
    const at = part.indexOf('=')
    return at < 1 ? [] : [[part.slice(0, at), part.slice(at + 1)] as const]
  })
  return Object.fromEntries(pairs)
}
