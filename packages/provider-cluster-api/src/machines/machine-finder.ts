/** Finds the Machine of a NodeClaim (cluster-api.md 7, 10, 11). */
import type { NodeClaim } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { HubReads } from '../hub/objects-of-hub.ts'
import type { Hub } from '../hub/hub.ts'
import type { FollowedMachines } from './followed-machines.ts'
import type { Machine } from '../objects.ts'
import { bindingOf, machineRefOf } from './binding.ts'

/** All results were just read from the hub. */
export class MachineFinder {
  readonly #hub: Hub
  readonly #reads: HubReads
  /** Bindings of this process, by UID of the claim, as caches may not show them yet. */
  readonly #bound = new Map<string, HubKey>()

  readonly #followed: FollowedMachines

  constructor(hub: Hub, reads: HubReads, followed: FollowedMachines) {
    this.#hub = hub
    this.#reads = reads
    this.#followed = followed
  }

  /** Remembers the Machine of a claim. */
  note(claim: NodeClaim, machine: Machine): void {
    this.#bound.set(claim.metadata.uid ?? '', hubKeyOf(machine))
  }

  forget(claimUid: string): void {
    this.#bound.delete(claimUid)
  }

  /**
   * The Machine of a claim, without listing all Machines. It is an error if the claim names one that does not exist or
   * is bound to another claim.
   * @throws ProviderError
   */
  async ofClaim(claim: NodeClaim, signal?: AbortSignal): Promise<Machine | undefined> {
    const { name, uid = '' } = claim.metadata
    const ref = machineRefOf(claim, this.#hub.names)
    if (ref.kind === 'invalid')
      throw new ProviderError(
        'other',
        `NodeClaim ${name}: annotation ${this.#hub.names.machine} is "${ref.text}"; it must be NAMESPACE/NAME`,
      )
    const noted = this.#bound.get(uid) ?? this.#followed.ofClaim(uid)[0]
    const key = noted ?? (ref.kind === 'ref' ? ref.key : undefined)
    if (key === undefined) return undefined
    const machine = await this.#reads.machine(key, signal)
    if (machine === undefined) {
      if (ref.kind === 'none') {
        this.#bound.delete(uid)
        return undefined
      }
      throw new ProviderError('other', `NodeClaim ${name}: its Machine ${hubText(key)} does not exist`)
    }
    const binding = bindingOf(machine, this.#hub.names)
    if (binding.kind === 'bound' && binding.claimUid !== uid)
      throw new ProviderError(
        'other',
        `NodeClaim ${name}: Machine ${hubText(key)} belongs to NodeClaim ${binding.claimName}`,
      )
    return machine
  }

  /** Undefined if it does not exist. */
  async at(key: HubKey, signal?: AbortSignal): Promise<Machine | undefined> {
    return await this.#reads.machine(key, signal)
  }

  /** The Machine that names the claim, by a list of all Machines. */
  async markedFor(claimUid: string, signal?: AbortSignal): Promise<Machine | undefined> {
    const machines = await this.#reads.machines(true, signal)
    return machines.find((machine) => this.#isMarkedFor(machine, claimUid))
  }

  /** All Machines with a provider ID. If there are several, nothing may be deleted. */
  async withProviderID(providerID: string, signal?: AbortSignal): Promise<readonly Machine[]> {
    const [cached, ...others] = this.#followed.withProviderID(providerID)
    if (cached !== undefined && others.length === 0) {
      const machine = await this.#reads.machine(cached, signal)
      if (machine?.spec?.providerID === providerID && this.#reads.isInScope(machine)) return [machine]
    }
    const machines = await this.#reads.machines(false, signal)
    return machines.filter(({ spec }) => spec?.providerID === providerID)
  }

  #isMarkedFor(machine: Machine, claimUid: string): boolean {
    const binding = bindingOf(machine, this.#hub.names)
    return binding.kind === 'bound' && binding.claimUid === claimUid
  }
}
