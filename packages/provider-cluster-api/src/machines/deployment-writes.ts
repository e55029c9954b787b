/** Writes to one MachineDeployment and its Machines (cluster-api.md 9, 10). */
import { type NodeClaim, ownValue } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import { clusterOf, opened, type HubReads } from '../hub/objects-of-hub.ts'
import { replicasOf, standstillOf } from '../catalogue/growth.ts'
import type { Machine, MachineDeployment, MachineSet } from '../objects.ts'
import { balanced, balancePatch, type Balance, stockOf, type Stock } from './balance.ts'
import { bindingOf, bindingPatch, isBoundAlike, isStaying } from './binding.ts'
import type { ReplicaContests } from '../catalogue/replica-contests.ts'
import { hasObserved, isSettled } from './shrinking.ts'

/** Attempts of a write after conflicts. */
const attempts = 3

/** What {@link DeploymentWrites} and its worker need. */
export interface WorkerDependencies {
  readonly hub: Hub
  readonly reads: HubReads
  /** Identity of the workload cluster. */
  readonly identity: () => Promise<string>
  readonly contests: ReplicaContests
  readonly clock: Clock
  readonly logger: Logger
}

/** A claim that needs a Machine. */
export interface Asker {
  readonly claim: NodeClaim
  /** Limit of replicas. */
  readonly maxReplicas: number | undefined
}

/** The result of a step. */
export interface Balanced {
  readonly stock: Stock
  readonly balance: Balance
  readonly limit: Limit
  /** Whether Cluster API had passed the replicas on to the MachineSets before the step began. */
  readonly isObserved: boolean
}

/** The limit of a MachineDeployment's replicas. */
export interface Limit {
  readonly maxReplicas?: number
  /** Why it cannot grow further: a clause without a full stop. */
  readonly because?: string
}

function limitOf(
  deployment: MachineDeployment,
  askers: readonly Asker[],
  because: string | undefined,
): Limit {
  if (because !== undefined) return { maxReplicas: replicasOf(deployment), because }
  const known = askers.flatMap(({ maxReplicas }) => maxReplicas ?? [])
  if (known.length === 0) return {}
  const maxReplicas = Math.min(...known)
  return { maxReplicas, because: `it may have ${String(maxReplicas)} replicas at most` }
}

/** All writes; each may be repeated after a crash. */
export class DeploymentWrites {
  readonly #key: HubKey
  readonly #deps: WorkerDependencies

  constructor(key: HubKey, deps: WorkerDependencies) {
    this.#key = key
    this.#deps = deps
  }

  /**
   * The current MachineDeployment.
   * @throws ProviderError if it does not exist.
   */
  async deployment(): Promise<MachineDeployment> {
    const deployment = await this.#deps.reads.deployment(this.#key)
    if (deployment !== undefined) return deployment
    throw new ProviderError('other', `MachineDeployment ${hubText(this.#key)} does not exist`)
  }

  /**
   * Marks a Machine for deletion first when its MachineSet shrinks.
   * @param meant the Machine as it was when its removal was decided.
   * @throws ProviderError if it has been bound to another claim since.
   */
  async mark(machine: Machine, meant: Machine): Promise<Machine> {
    const { hub, clock } = this.#deps
    const { uid, annotations } = machine.metadata
    if (!isBoundAlike(machine, meant, hub.names)) {
      const binding = bindingOf(machine, hub.names)
      const now =
        binding.kind === 'bound'
          ? `belongs to NodeClaim ${binding.claimName}`
          : 'is bound to another NodeClaim'
      throw new ProviderError('other', `Machine ${hubText(hubKeyOf(machine))} ${now} now: it is not deleted`)
    }
    if (ownValue(annotations, hub.names.deleteMachine) !== undefined) return machine
    const marks = { [hub.names.deleteMachine]: rfc3339(clock.now()) }
    const patch = { metadata: { ...(uid !== undefined && { uid }), annotations: marks } }
    return await hub.kube.patch<Machine>(opened(hub).kinds.machine, hubKeyOf(machine), patch)
  }

  /** Why a Machine does not belong to its MachineDeployment. */
  async absence(machine: Machine): Promise<ProviderError> {
    const key = hubKeyOf(machine)
    const current = await this.#deps.reads.machine(key)
    if (current === undefined || current.metadata.uid !== machine.metadata.uid)
      return new ProviderError('nodeClaimNotFound', `Machine ${hubText(key)} does not exist`)
    return new ProviderError(
      'other',
      `Machine ${hubText(key)} exists, but is not listed with those of MachineDeployment ${hubText(this.#key)}: it is not deleted`,
    )
  }

  /** Deletes a Machine: if its MachineSet has grown by another at the same time, a mark alone does not remove it. */
  async remove(machine: Machine): Promise<void> {
    const { hub } = this.#deps
    const { uid } = machine.metadata
    const options = uid === undefined ? {} : { preconditionUid: uid }
    try {
      await hub.kube.delete(opened(hub).kinds.machine, hubKeyOf(machine), options)
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }

  /**
   * Writes the replicas, unless they are correct already.
   * @param sets all MachineSets, read after `first` and before `listed`.
   */
  async balance(
    first: MachineDeployment,
    listed: readonly Machine[],
    release: ReadonlySet<string>,
    { askers, sets }: { readonly askers: readonly Asker[]; readonly sets: readonly MachineSet[] | undefined },
  ): Promise<Balanced> {
    const { hub, reads } = this.#deps
    let deployment = first
    let machines = listed
    for (let attempt = 1; ; attempt++) {
      const stock = stockOf(deployment, machines, hub.names)
      const limit = limitOf(deployment, askers, this.#standstill(deployment))
      // After a conflict the MachineSets are older than the MachineDeployment.
      const isFirst = attempt === 1
      const demand = {
        waiting: askers.length,
        release,
        ...limit,
        isSettled: isFirst && sets !== undefined && isSettled(deployment, sets),
      }
      const balance = balanced(deployment, machines, stock, demand)
      const patch = balancePatch(deployment, balance)
      const isObserved = isFirst && balance.replicas === replicasOf(deployment) && hasObserved(deployment)
      try {
        if (patch !== undefined) await this.#scale(deployment, patch, balance.replicas)
        return { stock, balance, limit, isObserved }
      } catch (error) {
        // Controllers write it often.
        if (!isKubeError(error, 'conflict') || attempt === attempts) throw error
        deployment = await this.deployment()
        machines = await reads.machinesOf(this.#key)
      }
    }
  }

  #standstill(deployment: MachineDeployment): string | undefined {
    const { contests, hub } = this.#deps
    return contests.because(this.#key) ?? standstillOf(deployment, hub.names, clusterOf(hub, deployment))
  }

  async #scale({ metadata, spec }: MachineDeployment, patch: object, to: number): Promise<void> {
    const { hub, logger } = this.#deps
    const { resourceVersion } = metadata
    const options = resourceVersion === undefined ? {} : { resourceVersion }
    await hub.kube.patch(opened(hub).kinds.machineDeployment, this.#key, patch, options)
    const from = spec?.replicas ?? 0
    if (from === to) return
    this.#deps.contests.wrote(this.#key, from, to)
    logger.info('scaled a MachineDeployment', { MachineDeployment: this.#key, from, to })
  }

  /** The bound Machine; undefined if it is no longer available. */
  async bind(machine: Machine, claim: NodeClaim): Promise<Machine | undefined> {
    const { hub, reads, identity } = this.#deps
    const patch = bindingPatch(claim, hub.names, await identity())
    let current: Machine | undefined = machine
    for (let attempt = 1; ; attempt++) {
      const { resourceVersion } = current.metadata
      const options = resourceVersion === undefined ? {} : { resourceVersion }
      try {
        return await hub.kube.patch<Machine>(opened(hub).kinds.machine, hubKeyOf(machine), patch, options)
      } catch (error) {
        if (isKubeError(error, 'notFound')) return undefined
        if (!isKubeError(error, 'conflict') || attempt === attempts) throw error
        current = await reads.machine(hubKeyOf(machine))
        const binding = current && bindingOf(current, hub.names)
        if (current === undefined || binding === undefined || !isStaying(current, hub.names)) return undefined
        if (binding.kind === 'bound') return binding.claimUid === claim.metadata.uid ? current : undefined
        // Another provider has bound it, or it was replaced by another Machine of this name.
        if (!isBoundAlike(current, machine, hub.names) || current.metadata.uid !== machine.metadata.uid)
          return undefined
      }
    }
  }
}
