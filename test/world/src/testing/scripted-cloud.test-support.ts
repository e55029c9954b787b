/** A cloud that does what a test tells it. */
import { type InstanceType, labels, type NodeClaim, type NodeClass, type ResourceType } from '@tenon/api'
import {
  type CloudProvider,
  ProviderError,
  type ProviderInstance,
  type RegistrationHook,
  type RepairPolicy,
} from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Clock } from '@tenon/runtime'

type Script<T extends unknown[], R> = (...args: T) => R

/**
 * Instances live in memory; an instance whose deletion was asked for is gone after `deletionMs`. Each is of type `medium`
 * in `zone-1`, whatever its claim requires, unless `extras` says otherwise.
 */
export class ScriptedCloud implements CloudProvider {
  readonly name = 'scripted'
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [kwokNodeClassKind]
  readonly wellKnownLabels: readonly string[] = []
  repairPolicies: readonly RepairPolicy[] = []
  readonly #clock: () => Clock
  readonly #instances = new Map<string, ProviderInstance & { readonly goneAtMs: number }>()
  /** Calls in order, `create NAME`, with the time of each. */
  readonly calls: { readonly call: string; readonly atMs: number }[] = []
  deletionMs = 0
  /** How long a creation takes before there is an instance; who calls may give up before. */
  creationMs = 0
  registrationHooks: readonly RegistrationHook[] = []
  instanceTypes: readonly InstanceType[] = []
  /** Throws or not, before an instance is made. */
  onCreate: Script<[NodeClaim], void> = () => undefined
  onDelete: Script<[NodeClaim], void> = () => undefined
  onGet: Script<[string], void> = () => undefined
  /** What happens before the instances are looked at, and before the answer arrives. */
  onList: Script<[], Promise<void>> = () => Promise.resolve()
  /** Absent: this cloud cannot reboot instances. */
  reboot?: NonNullable<CloudProvider['reboot']>
  onIsDrifted: Script<[NodeClaim], string | undefined> = () => undefined
  /** What a new instance has beside the usual. */
  extras: Partial<ProviderInstance> = {}

  constructor(clock: () => Clock) {
    this.#clock = clock
  }

  /** How often `call` was made. */
  count(call: string): number {
    return this.calls.filter((each) => each.call.startsWith(call)).length
  }

  timesOf(call: string): readonly number[] {
    return this.calls.filter((each) => each.call.startsWith(call)).map(({ atMs }) => atMs)
  }

  /** Instances that exist. */
  get instances(): readonly ProviderInstance[] {
    return [...this.#instances.values()].filter(({ goneAtMs }) => goneAtMs > this.#clock().now())
  }

  /** Takes an instance away without anybody asking for it. */
  lose(providerID: string): void {
    this.#instances.delete(providerID)
  }

  markDeleting(providerID: string): void {
    const instance = this.#instances.get(providerID)
    if (instance !== undefined) this.#instances.set(providerID, { ...instance, deleting: true })
  }

  ownsProviderID(providerID: string): boolean {
    return providerID.startsWith('fake://')
  }

  async create(claim: NodeClaim, signal?: AbortSignal): Promise<ProviderInstance> {
    this.#note(`create ${claim.metadata.name}`)
    const existing = this.instances.find(({ nodeClaimName }) => nodeClaimName === claim.metadata.name)
    if (existing !== undefined) return await Promise.resolve(existing)
    this.onCreate(claim)
    if (this.creationMs > 0) await this.#clock().sleep(this.creationMs, signal)
    const instance: ProviderInstance = {
      providerID: `fake://${claim.metadata.name}`,
      imageID: 'image-1',
      labels: {
        [labels.os]: 'linux',
        [labels.instanceType]: 'medium',
        [labels.zone]: 'zone-1',
        [labels.capacityType]: 'on-demand',
      },
      capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      allocatable: { cpu: '3800m', memory: '7Gi', pods: '110' },
      nodeClaimName: claim.metadata.name,
      deleting: false,
      ...this.extras,
    }
    this.#instances.set(instance.providerID, { ...instance, goneAtMs: Number.POSITIVE_INFINITY })
    return instance
  }

  async delete(claim: NodeClaim): Promise<void> {
    this.#note(`delete ${claim.metadata.name}`)
    this.onDelete(claim)
    const providerID = claim.status?.providerID ?? ''
    const instance = this.#known(providerID)
    const goneAtMs = Math.min(instance.goneAtMs, this.#clock().now() + this.deletionMs)
    this.#instances.set(providerID, { ...instance, deleting: true, goneAtMs })
    await Promise.resolve()
  }

  async get(providerID: string): Promise<ProviderInstance> {
    this.#note(`get ${providerID}`)
    this.onGet(providerID)
    return await Promise.resolve(this.#known(providerID))
  }

  async list(): Promise<readonly ProviderInstance[]> {
    this.#note('list')
    await this.onList()
    const { instances } = this
    await this.onList()
    return instances
  }

  async getInstanceTypes(): Promise<readonly InstanceType[]> {
    return await Promise.resolve(this.instanceTypes)
  }

  async isDrifted(claim: NodeClaim): Promise<string | undefined> {
    return await Promise.resolve(this.onIsDrifted(claim))
  }

  startControllers(): void {
    // This cloud has none.
  }

  #known(providerID: string): ProviderInstance & { readonly goneAtMs: number } {
    const instance = this.#instances.get(providerID)
    if (instance === undefined || instance.goneAtMs <= this.#clock().now())
      throw new ProviderError('nodeClaimNotFound', `no instance ${providerID}`)
    return instance
  }

  #note(call: string): void {
    this.calls.push({ call, atMs: this.#clock().now() })
  }
}
