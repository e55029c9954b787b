import { ownValue } from '@tenon/api'
import type { NodeJoiner } from '@tenon/devcluster'
import type { CloudContext } from '../zone/cloud-state.ts'
import type { Instance } from './instance.ts'
import { configureGuest, type GuestConfiguration } from './guest-boot.ts'
import { failed, type OperationOutcome, succeeded } from './operation-outcome.ts'
import { keepInstance } from './kept-instances.ts'
import type { ListedInstances } from './listed-instances.ts'
import { drawDelay } from '../settings.ts'

/** Powers instances on and off, and lets booted ones join the cluster. */
export class InstanceLife {
  readonly #context: CloudContext
  readonly #joiner: NodeJoiner
  readonly #listed: ListedInstances
  readonly #poolUserData: (instance: Instance) => string | undefined

  /** @param poolUserData user data of members of pools that have none of their own. */
  constructor(
    context: CloudContext,
    joiner: NodeJoiner,
    listed: ListedInstances,
    poolUserData: (instance: Instance) => string | undefined,
  ) {
    this.#poolUserData = poolUserData
    this.#listed = listed
    this.#context = context
    this.#joiner = joiner
  }

  /** Finds capacity for an instance, or fails with `unavailable`. */
  place(instance: Instance): OperationOutcome {
    const { settings, state } = this.#context
    const { type } = instance
    const room = ownValue(settings.capacity, type.name) ?? Number.POSITIVE_INFINITY
    if (!instance.placed && state.instances.placedOf(type) >= room) {
      return failed('unavailable', `no room for an instance of type ${type.name} in ${state.zone}`)
    }
    state.instances.place(instance)
    return succeeded
  }

  /** The instance is running; its system boots. */
  powerOn(instance: Instance): void {
    const { clock, random, settings } = this.#context
    instance.state = 'running'
    const boot = this.cut(instance)
    instance.system.phase = 'booting'
    keepInstance(this.#context.kept, instance)
    if (instance.system.neverBoots) return
    clock.after(drawDelay(random, settings.bootDelay), () => {
      if (instance.system.boot === boot) void this.#join(instance, boot)
    })
  }

  /** Cuts the instance's power at once. */
  powerOff(instance: Instance): void {
    this.cut(instance)
    instance.system.phase = 'off'
    keepInstance(this.#context.kept, instance)
  }

  /** Continues an instance of an earlier run that had joined as a node. */
  resume(instance: Instance): void {
    this.cut(instance)
    const guest = configureGuest(instance, this.#context.settings)
    if (guest.kind === 'broken') {
      this.#fail(instance, guest.reason)
      return
    }
    instance.system.kubelet = this.#joiner.resume(guest.kubelet)
    instance.system.phase = 'joined'
  }

  /** The instance no longer exists. */
  remove(instance: Instance): void {
    this.powerOff(instance)
    instance.state = 'destroyed'
    const { instances, publicAddresses } = this.#context.state
    keepInstance(this.#context.kept, instance)
    this.#listed.removed(instance)
    instances.remove(instance)
    if (instance.publicIp !== undefined) publicAddresses.giveBack(instance.publicIp)
    instance.publicIp = undefined
  }

  /** Ends whatever runs in the instance; returns the number of the next boot. */
  cut(instance: Instance): number {
    const { system } = instance
    system.kubelet?.stop()
    system.kubelet = undefined
    system.whyNotJoined = undefined
    return ++system.boot
  }

  async #join(instance: Instance, boot: number): Promise<void> {
    const { clock, settings } = this.#context
    instance.system.phase = 'joining'
    instance.userData ??= this.#poolUserData(instance)
    const guest = configureGuest(instance, settings)
    if (guest.kind === 'broken') {
      this.#fail(instance, guest.reason)
      return
    }
    const deadline = clock.monotonic() + settings.joinTimeoutMs
    while (clock.monotonic() < deadline) {
      const refusal = await this.#attempt(instance, boot, guest)
      if (refusal === undefined || instance.system.boot !== boot) return
      this.#note(instance, refusal)
      if (!(await this.#pause(settings.joinRetryMs)) || instance.system.boot !== boot) return
    }
    this.#fail(instance, instance.system.whyNotJoined ?? 'gave up')
  }

  /** One attempt; returns why it failed. */
  async #attempt(
    instance: Instance,
    boot: number,
    guest: Extract<GuestConfiguration, { kind: 'ready' }>,
  ): Promise<string | undefined> {
    if (instance.system.neverJoins) return 'the instance cannot reach the cluster'
    try {
      const result = await this.#joiner.join(guest.credentials, guest.kubelet)
      if (result.kind === 'refused') return result.reason
      if (instance.system.boot !== boot) {
        result.kubelet.stop()
        return undefined
      }
      instance.system.kubelet = result.kubelet
      instance.system.whyNotJoined = undefined
      instance.system.phase = 'joined'
      keepInstance(this.#context.kept, instance)
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : 'the attempt to join failed'
    }
  }

  /** Returns false if the cloud has stopped. */
  async #pause(ms: number): Promise<boolean> {
    const { clock } = this.#context
    try {
      await clock.sleep(ms)
      return true
    } catch (error) {
      if (clock.isStopped) return false
      throw error
    }
  }

  #fail(instance: Instance, reason: string): void {
    this.#note(instance, reason)
    instance.system.phase = 'failed'
  }

  #note(instance: Instance, reason: string): void {
    if (instance.system.whyNotJoined === reason) return
    instance.system.whyNotJoined = reason
    this.#context.logger.warn('instance cannot join the cluster', { instance: instance.name, reason })
  }
}
