/** Removes the Machine of a NodeClaim (cluster-api.md 10). */
import { labels, type NodeClaim, ownValue } from '@tenon/api'
import { type OfferingNews, ProviderError } from '@tenon/provider'
import type { Clock, Listeners } from '@tenon/runtime'
import { hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import type { Machine } from '../objects.ts'
import { bindingOf, machineRefOf } from './binding.ts'
import type { Deployments } from './deployments.ts'
import { type Launcher, sharedProviderID } from './launcher.ts'
import type { MachineFinder } from './machine-finder.ts'

/** A Machine without a provider ID after this time counts as failed. */
const slowMs = 3 * 60_000

export interface ReleaserDependencies {
  readonly hub: Hub
  readonly machines: MachineFinder
  readonly deployments: Deployments
  readonly launcher: Pick<Launcher, 'forget'>
  readonly news: Listeners<OfferingNews>
  readonly clock: Clock
}

/** Removes Machines. All methods may be repeated after a crash at any point. */
export class Releaser {
  readonly #deps: ReleaserDependencies

  constructor(deps: ReleaserDependencies) {
    this.#deps = deps
  }

  /**
   * Starts or continues the removal of a claim's Machine.
   * @throws ProviderError of kind `nodeClaimNotFound` if there is none, KubeError if the hub fails.
   */
  async release(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    const { deployments, launcher, machines } = this.#deps
    const { uid = '' } = claim.metadata
    await deployments.forget(uid)
    launcher.forget(uid)
    const machine = await this.#machineOf(claim, signal)
    machines.forget(uid)
    if (machine === undefined)
      throw new ProviderError('nodeClaimNotFound', `NodeClaim ${claim.metadata.name} has no Machine`)
    if (machine.metadata.deletionTimestamp !== undefined) return
    await this.give(machine)
    this.#tellSlow(claim, machine)
  }

  /**
   * Deletes a Machine that is not needed.
   * @throws ProviderError if it has no MachineDeployment.
   */
  async give(machine: Machine): Promise<void> {
    const { deployments, hub } = this.#deps
    const key = hubKeyOf(machine)
    const name = ownValue(machine.metadata.labels, hub.names.deploymentName) ?? ''
    if (name === '')
      throw new ProviderError(
        'other',
        `Machine ${hubText(key)} has no label ${hub.names.deploymentName}: it belongs to no MachineDeployment, so its replacement cannot be prevented`,
      )
    await deployments.worker({ namespace: key.namespace, name }).release(machine)
  }

  async #machineOf(claim: NodeClaim, signal: AbortSignal | undefined): Promise<Machine | undefined> {
    const { machines } = this.#deps
    const providerID = claim.status?.providerID ?? ''
    const found = providerID === '' ? [] : await machines.withProviderID(providerID, signal)
    const [first, second] = found
    if (first !== undefined && second !== undefined) throw sharing(providerID, found)
    if (first !== undefined) return this.#owned(claim, first)
    const machine =
      (await this.#named(claim, signal)) ?? (await machines.markedFor(claim.metadata.uid ?? '', signal))
    const own = machine?.spec?.providerID ?? ''
    const alike = own === '' ? [] : await machines.withProviderID(own, signal)
    if (alike.length > 1) throw sharing(own, alike)
    return machine
  }

  /** The Machine that a claim without a provider ID names, unless it is gone. */
  async #named(claim: NodeClaim, signal: AbortSignal | undefined): Promise<Machine | undefined> {
    const { machines, hub } = this.#deps
    const ref = machineRefOf(claim, hub.names)
    if (ref.kind !== 'ref' || (claim.status?.providerID ?? '') !== '') return undefined
    const machine = await machines.at(ref.key, signal)
    return machine && this.#owned(claim, machine)
  }

  /** @throws ProviderError if the Machine does not name this claim. */
  #owned(claim: NodeClaim, machine: Machine): Machine {
    const binding = bindingOf(machine, this.#deps.hub.names)
    const text = hubText(hubKeyOf(machine))
    if (binding.kind === 'bound' && binding.claimUid !== claim.metadata.uid)
      throw new ProviderError(
        'other',
        `Machine ${text} belongs to NodeClaim ${binding.claimName}: it is not deleted for ${claim.metadata.name}`,
      )
    if (binding.kind === 'free')
      throw new ProviderError(
        'other',
        `Machine ${text} belongs to no NodeClaim, it lacks the label ${this.#deps.hub.names.member}: it is not deleted for ${claim.metadata.name}`,
      )
    return machine
  }

  /** If the infrastructure created nothing, other MachineDeployments are tried first for a while. */
  #tellSlow(claim: NodeClaim, machine: Machine): void {
    const { clock, news } = this.#deps
    const ageMs = clock.now() - Date.parse(machine.metadata.creationTimestamp ?? '')
    const instanceType = ownValue(claim.metadata.labels, labels.instanceType) ?? singleType(claim)
    const zone = ownValue(claim.metadata.labels, labels.zone)
    if ((machine.spec?.providerID ?? '') !== '' || !(ageMs >= slowMs)) return
    if (instanceType === undefined || zone === undefined) return
    const capacityType = ownValue(claim.metadata.labels, labels.capacityType) ?? 'on-demand'
    news.notify({
      kind: 'refused',
      offerings: [{ instanceType, zone, capacityType }],
      because: `Machine ${hubText(hubKeyOf(machine))} had no provider ID after ${String(Math.round(ageMs / 60_000))} min`,
    })
  }
}

function singleType({ spec }: NodeClaim): string | undefined {
  const values = spec.requirements.find(({ key }) => key === labels.instanceType)?.values ?? []
  return values.length === 1 ? values[0] : undefined
}

function sharing(providerID: string, machines: readonly Machine[]): ProviderError {
  const keys = machines.map((machine) => hubText(hubKeyOf(machine)))
  return new ProviderError('other', sharedProviderID(providerID, keys))
}
