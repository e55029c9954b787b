/** From a NodeClaim to a Machine with a provider ID (cluster-api.md 7). */
import type { InstanceType, NodeClaim } from '@tenon/api'
import { type Cache, type EventRecorder, type KubeClient, untilAborted } from '@tenon/kube'
import { ProviderError, readyNodeClass } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { compareTexts, type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Participant } from '../catalogue/participant.ts'
import { type Hub } from '../hub/hub.ts'
import { type HubReads, opened } from '../hub/objects-of-hub.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from '../node-class.ts'
import type { Machine } from '../objects.ts'
import { bindingOf, bindingPatch } from './binding.ts'
import type { Deployments } from './deployments.ts'
import type { FollowedMachines } from './followed-machines.ts'
import type { MachineFinder } from './machine-finder.ts'

/** How long one attempt waits for a provider ID; the core then starts another. */
const patienceMs = 30_000
const pollMs = 1000

export interface LauncherDependencies {
  readonly view: {
    readonly hub: Hub
    readonly reads: HubReads
  }
  readonly workload: Workload
  readonly machines: Pick<MachineFinder, 'note' | 'ofClaim'>
  readonly deployments: Pick<Deployments, 'worker'>
  readonly followed: FollowedMachines
  readonly clock: Clock
}

/** The workload cluster as launches use it. */
export interface Workload {
  readonly kube: Pick<KubeClient, 'get'>
  readonly nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'get'>
  readonly events: EventRecorder
  /** Distinguishes clusters that share a hub. */
  readonly identity: () => Promise<string>
  /** MachineDeployments for a claim, in the order in which they are tried. */
  readonly candidates: (
    claim: NodeClaim,
    nodeClass: ClusterAPINodeClass,
    types: readonly InstanceType[] | undefined,
  ) => Promise<readonly Participant[]>
}

/** Launches Machines. All methods may be repeated after a crash at any point. */
export class Launcher {
  readonly #deps: LauncherDependencies
  /**
   * By UID of the claim: the MachineDeployment of the last attempt, while it is unknown whether it bound a Machine.
   */
  readonly #attempted = new Map<string, HubKey>()

  constructor(deps: LauncherDependencies) {
    this.#deps = deps
  }

  /**
   * The Machine of a claim, with a provider ID: its existing one, or another.
   * @param types the types that the claim may use, as decisions see them.
   * @throws ProviderError if it gets none, KubeError if an API server fails.
   */
  async launch(
    claim: NodeClaim,
    types: readonly InstanceType[] | undefined,
    signal?: AbortSignal,
  ): Promise<Machine> {
    if ((claim.metadata.uid ?? '') === '')
      throw new ProviderError('other', `NodeClaim ${claim.metadata.name} has no UID to bind a Machine to`)
    const machine = (await this.#existing(claim, signal)) ?? (await this.#bind(claim, types, signal))
    this.#deps.machines.note(claim, machine)
    return await this.#provisioned(claim, machine, signal)
  }

  forget(claimUid: string): void {
    this.#attempted.delete(claimUid)
  }

  async #existing(claim: NodeClaim, signal: AbortSignal | undefined): Promise<Machine | undefined> {
    const { machines, view } = this.#deps
    const { hub, reads } = view
    const { uid = '' } = claim.metadata
    const machine = await machines.ofClaim(claim, signal)
    if (machine !== undefined) return await this.#adopted(claim, machine, signal)
    const attempted = this.#attempted.get(uid)
    if (attempted === undefined) return undefined
    const found = (await reads.machinesOf(attempted, signal)).find((each) => {
      const binding = bindingOf(each, hub.names)
      return binding.kind === 'bound' && binding.claimUid === uid
    })
    this.#attempted.delete(uid)
    return found
  }

  /** Writes our binding to a Machine that another provider bound. */
  async #adopted(claim: NodeClaim, machine: Machine, signal: AbortSignal | undefined): Promise<Machine> {
    const { view, workload } = this.#deps
    const { hub } = view
    if (bindingOf(machine, hub.names).kind === 'bound') return machine
    const { resourceVersion } = machine.metadata
    return await hub.kube.patch<Machine>(
      opened(hub).kinds.machine,
      hubKeyOf(machine),
      bindingPatch(claim, hub.names, await workload.identity()),
      {
        ...(resourceVersion !== undefined && { resourceVersion }),
        ...(signal !== undefined && { signal }),
      },
    )
  }

  async #bind(
    claim: NodeClaim,
    types: readonly InstanceType[] | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Machine> {
    const { workload, deployments } = this.#deps
    const { name, uid = '' } = claim.metadata
    const nodeClass = await readyNodeClass(clusterAPINodeClassKind, workload, claim, signal)
    const candidates = await workload.candidates(claim, nodeClass, types)
    const refusals: string[] = []
    for (const { key, maxReplicas } of candidates) {
      this.#attempted.set(uid, key)
      const outcome = await untilAborted(deployments.worker(key).claim(claim, maxReplicas), signal)
      this.#attempted.delete(uid)
      if (outcome.kind === 'bound') {
        this.#tellBound(claim, key, outcome.machine)
        return outcome.machine
      }
      refusals.push(outcome.because)
    }
    throw new ProviderError(
      'insufficientCapacity',
      refusals.length === 0
        ? `NodeClaim ${name}: no MachineDeployment that it allows is available and large enough`
        : `NodeClaim ${name}: ${refusals.join('; ')}`,
    )
  }

  #tellBound(claim: NodeClaim, key: HubKey, machine: Machine): void {
    this.#deps.workload.events.record({
      object: claim,
      type: 'Normal',
      reason: 'MachineBound',
      message: `Bound to Machine ${hubText(hubKeyOf(machine))} of MachineDeployment ${hubText(key)}`,
      dedupe: [claim.metadata.uid ?? claim.metadata.name],
    })
  }

  /** The Machine, once the infrastructure has set its provider ID. */
  async #provisioned(claim: NodeClaim, bound: Machine, signal: AbortSignal | undefined): Promise<Machine> {
    const { clock, view, followed } = this.#deps
    const { hub, reads } = view
    const endMs = clock.monotonic() + patienceMs
    let machine = bound
    for (;;) {
      const providerID = machine.spec?.providerID ?? ''
      if (providerID !== '') return this.#alone(machine, providerID)
      const failure = failureOf(machine)
      if (failure !== undefined) throw this.#failed(claim, machine, failure)
      if (clock.monotonic() >= endMs)
        throw new ProviderError(
          'other',
          `Machine ${hubText(hubKeyOf(machine))} has no provider ID yet; Cluster API says ${machine.status?.phase ?? 'nothing'} of it`,
          { blames: { what: 'nothing' } },
        )
      await followed.changed(hubKeyOf(machine), clock, pollMs, signal)
      const { caches } = opened(hub)
      const key = hubKeyOf(machine)
      const next = caches.machines.get(key) ?? (await reads.machine(key, signal))
      if (next === undefined || next.metadata.uid !== bound.metadata.uid)
        throw new ProviderError('other', `Machine ${hubText(key)} was deleted before it had a provider ID`)
      const binding = bindingOf(next, hub.names)
      if (binding.kind === 'bound' && binding.claimUid !== claim.metadata.uid)
        throw new ProviderError(
          'other',
          `Machine ${hubText(key)} belongs to NodeClaim ${binding.claimName} now`,
        )
      machine = next
    }
  }

  /** A provider ID identifies a Node, so two Machines must not share one. */
  #alone(machine: Machine, providerID: string): Machine {
    const own = hubText(hubKeyOf(machine))
    const others = this.#deps.followed
      .withProviderID(providerID)
      .map(hubText)
      .filter((key) => key !== own)
    if (others.length === 0) return machine
    throw new ProviderError('other', sharedProviderID(providerID, [own, ...others]))
  }

  #failed(claim: NodeClaim, machine: Machine, failure: string): ProviderError {
    const text = `Machine ${hubText(hubKeyOf(machine))} has failed: ${failure}`
    this.#deps.workload.events.record({
      object: claim,
      type: 'Warning',
      reason: 'MachineFailed',
      message: text,
      dedupe: [claim.metadata.uid ?? claim.metadata.name],
    })
    return new ProviderError('insufficientCapacity', `NodeClaim ${claim.metadata.name}: ${text}`)
  }
}

/** Why a Machine will never become a node; undefined if it still may. */
function failureOf({ metadata, status }: Machine): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return 'it is being deleted'
  if (status?.phase !== 'Failed' && (status?.failureReason ?? '') === '') return undefined
  return status?.failureMessage || status?.failureReason || 'Cluster API does not say why'
}

/** @param machines as `namespace/name`. */
export function sharedProviderID(providerID: string, machines: readonly string[]): string {
  return `provider ID ${providerID} is that of ${machines.toSorted(compareTexts).join(' and ')}: none of them is used or deleted; the infrastructure provider has to set a unique one for each`
}
