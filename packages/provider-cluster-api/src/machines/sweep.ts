/** Removes Machines without a NodeClaim (cluster-api.md trap 7). */
import { karpenterKinds, kinds, labels, type NodeClaim, ownValue } from '@tenon/api'
import {
  type Cache,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import { heldMessage, SweepGuard, type SweepRound } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { isSelected, membersOf } from '../catalogue/members.ts'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import { opened, type HubReads } from '../hub/objects-of-hub.ts'
import type { ClusterApiMetrics } from '../metrics.ts'
import { type ClusterAPINodeClass } from '../node-class.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import { ledgerPatch, stockOf, surplusOf } from './balance.ts'
import { bindingOf, isOfOther } from './binding.ts'
import type { Deployments } from './deployments.ts'
import type { Releaser } from './releaser.ts'
import { shrinksFirst } from './shrinking.ts'

const periodMs = 60_000
/** How long every pass must find that a Machine has no claim. */
const orphanMs = 2 * 60_000
/** For so long one that may run pods is announced first: after a restore of etcd the claims of the last hour are missing (ADO-15). */
const noticeMs = 10 * 60_000
/** The same for Machines that were never bound, as launches may be about to bind them. */
const surplusMs = 5 * 60_000
/** The minimum age of such a Machine, as it may still be becoming a node. */
const startMs = 15 * 60_000

export interface MachineSweepDependencies {
  readonly hub: HubView
  /** The workload cluster, with the node classes on which events are recorded. */
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'list'>
  readonly events: EventRecorder
  readonly releaser: Pick<Releaser, 'give'>
  readonly metrics: Pick<ClusterApiMetrics, 'reaped' | 'givenBack'>
  readonly process: { readonly clock: Clock; readonly logger: Logger }
}

/** The hub as the sweep uses it. */
interface HubView {
  readonly hub: Hub
  readonly reads: HubReads
  readonly deployments: Pick<Deployments, 'waiting'>
  readonly identity: () => Promise<string>
}

/**
 * Sweeps Machines. Nothing is deleted because of one list: each Machine and its claim are read again first.
 */
export class MachineSweep {
  readonly guard: SweepGuard
  readonly #deps: MachineSweepDependencies
  /** Since when Machines have been found without a claim, by UID; monotonic milliseconds. */
  readonly #since = new Map<string, number>()
  /** UIDs of those that were removed but may still be there, as Cluster API takes its time. */
  readonly #removed = new Set<string>()

  constructor(deps: MachineSweepDependencies) {
    this.#deps = deps
    const { clock } = deps.process
    this.guard = new SweepGuard({ clock, name: 'clusterapi_machines', graceMs: orphanMs, noticeMs })
  }

  /** @throws AggregateError of all failures, after everything else was done. */
  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { hub } = this.#deps.hub
    // Nothing can be swept before.
    if (hub.state.kind !== 'open') return { kind: 'after', delayMs: periodMs }
    const { reads } = this.#deps.hub
    const machines = await reads.machines(false, signal)
    const claims = await this.#deps.kube.list(karpenterKinds.nodeClaim, { signal })
    const orphans = await this.#orphans(machines, claims)
    const surplus = await this.#surplus(machines, signal)
    const found = [...orphans, ...surplus]
    this.#remember(found)
    const ripe = [
      ...orphans.filter((machine) => this.#ageMs(machine) >= orphanMs),
      ...surplus.filter((machine) => this.#ageMs(machine) >= surplusMs && this.#hasHadTime(machine)),
    ]
    const nodes = new Set(orphans.filter(({ status }) => (status?.nodeRef?.name ?? '') !== '').map(uidOf))
    const round = this.guard.admit(ripe.map(uidOf), machines.length, (uid) => nodes.has(uid))
    this.#reportHeld(round, machines.length)
    const admitted = new Set(round.admitted)
    const failures: unknown[] = []
    for (const machine of ripe.filter((each) => admitted.has(uidOf(each)))) {
      try {
        if (orphans.includes(machine)) await this.#reap(machine, signal)
        else await this.#giveBack(machine, signal)
      } catch (error) {
        signal.throwIfAborted()
        failures.push(error)
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, `sweep of Machines: ${failures.join('; ')}`)
    return { kind: 'after', delayMs: periodMs }
  }

  #reportHeld(round: SweepRound, present: number): void {
    if (round.held.length === 0) return
    const { nodeClasses, events, process } = this.#deps
    const message = heldMessage('Machines have no NodeClaim', round, present)
    process.logger.warn(message, { held: round.held.slice(0, 20) })
    const reason = 'MachineSweepHeld'
    for (const object of nodeClasses.list())
      events.record({ object, type: 'Warning', reason, message, dedupe: [reason] })
  }

  /** Machines that this installation bound to claims that no longer exist. */
  async #orphans(machines: readonly Machine[], claims: readonly NodeClaim[]): Promise<readonly Machine[]> {
    const { hub, identity } = this.#deps.hub
    const uids = new Set(claims.map(({ metadata }) => metadata.uid))
    const providerIDs = new Set(claims.map(({ status }) => status?.providerID))
    const cluster = await identity()
    return machines.filter((machine) => {
      const binding = bindingOf(machine, hub.names)
      const providerID = machine.spec?.providerID ?? ''
      return (
        binding.kind === 'bound' &&
        machine.metadata.deletionTimestamp === undefined &&
        !isOfOther(machine, cluster) &&
        !uids.has(binding.claimUid) &&
        (providerID === '' || !providerIDs.has(providerID))
      )
    })
  }

  /** Machines that were created for claims but never bound, and that certainly run no pods. */
  async #surplus(machines: readonly Machine[], signal: AbortSignal): Promise<readonly Machine[]> {
    const { hub, deployments } = this.#deps.hub
    const { names, scope } = hub
    // A MachineDeployment that is no longer a member is left alone, with all its Machines.
    const membership = membersOf(opened(hub).caches.machineDeployments.list(), names, scope)
    if (membership.kind === 'refused') return []
    const owned = Map.groupBy(machines, (machine) => hubText(this.#deploymentKey(machine)))
    const found: Machine[] = []
    for (const deployment of membership.deployments) {
      const key = hubKeyOf(deployment)
      await this.#forgetTaken(deployment, signal)
      const stock = stockOf(deployment, owned.get(hubText(key)) ?? [], names)
      const surplus = surplusOf(deployment, stock, deployments.waiting(key))
      if (surplus.length > 0) found.push(...(await this.#spare(deployment, surplus, signal)))
    }
    return found
  }

  /**
   * Those whose replica can be removed with them. During a rollout Cluster API would create another Machine, and needs
   * those of the rollout.
   */
  async #spare(
    deployment: MachineDeployment,
    surplus: readonly Machine[],
    signal: AbortSignal,
  ): Promise<readonly Machine[]> {
    const { hub, reads } = this.#deps.hub
    const sets = await reads.setsOf(hubKeyOf(deployment), signal)
    const isSpare = await Promise.all(
      surplus.map(
        async (machine) =>
          shrinksFirst(deployment, sets, ownValue(machine.metadata.labels, hub.names.setName)) &&
          !(await this.#mayRunPods(machine, signal)),
      ),
    )
    return surplus.filter((_machine, index) => isSpare[index])
  }

  async #forgetTaken(deployment: MachineDeployment, signal: AbortSignal): Promise<void> {
    const { hub } = this.#deps.hub
    const patch = ledgerPatch(deployment)
    if (patch === undefined) return
    const { resourceVersion } = deployment.metadata
    const options = { signal, ...(resourceVersion !== undefined && { resourceVersion }) }
    try {
      await hub.kube.patch(opened(hub).kinds.machineDeployment, hubKeyOf(deployment), patch, options)
    } catch (error) {
      // It has changed; the next pass checks it again.
      if (!isKubeError(error, 'conflict', 'notFound')) throw error
    }
  }

  #deploymentKey(machine: Machine): HubKey {
    const name = ownValue(machine.metadata.labels, this.#deps.hub.hub.names.deploymentName) ?? ''
    return { ...hubKeyOf(machine), name }
  }

  #hasHadTime({ metadata: { creationTimestamp = '' } }: Machine): boolean {
    return this.#deps.process.clock.now() - Date.parse(creationTimestamp) >= startMs
  }

  #remember(found: readonly Machine[]): void {
    const uids = new Set(found.map(uidOf))
    for (const uid of this.#since.keys()) if (!uids.has(uid)) this.#since.delete(uid)
    for (const uid of this.#removed) if (!uids.has(uid)) this.#removed.delete(uid)
    const now = this.#deps.process.clock.monotonic()
    for (const uid of uids) if (!this.#since.has(uid)) this.#since.set(uid, now)
  }

  #ageMs(machine: Machine): number {
    const now = this.#deps.process.clock.monotonic()
    return now - (this.#since.get(uidOf(machine)) ?? now)
  }

  /** Notes the removal of a Machine, which later passes repeat until it is gone. */
  #isRemovedBefore(machine: Machine): boolean {
    const uid = uidOf(machine)
    const isKnown = this.#removed.has(uid)
    this.#removed.add(uid)
    return isKnown
  }

  async #reap(machine: Machine, signal: AbortSignal): Promise<void> {
    const { kube, hub, releaser, metrics, process } = this.#deps
    const current = await hub.reads.machine(hubKeyOf(machine), signal)
    if (current === undefined || uidOf(current) !== uidOf(machine)) return
    const binding = bindingOf(current, hub.hub.names)
    if (binding.kind !== 'bound') return
    const claim = await kube.get(karpenterKinds.nodeClaim, { name: binding.claimName }, { signal })
    if (claim?.metadata.uid === binding.claimUid) return
    // A claim that was restored from a backup has another UID.
    const providerID = current.spec?.providerID ?? ''
    if (providerID !== '' && claim?.status?.providerID === providerID) return
    await releaser.give(current)
    if (this.#isRemovedBefore(current)) return
    metrics.reaped.count()
    process.logger.info('deleted a Machine whose NodeClaim is gone', {
      Machine: hubText(hubKeyOf(machine)),
      NodeClaim: binding.claimName,
    })
  }

  async #giveBack(machine: Machine, signal: AbortSignal): Promise<void> {
    const { hub, releaser, metrics, process } = this.#deps
    const current = await hub.reads.machine(hubKeyOf(machine), signal)
    if (current === undefined || uidOf(current) !== uidOf(machine)) return
    if (bindingOf(current, hub.hub.names).kind === 'bound' || (await this.#mayRunPods(current, signal)))
      return
    await releaser.give(current)
    if (this.#isRemovedBefore(current)) return
    metrics.givenBack.count()
    this.#tellGivenBack(current)
    process.logger.info('deleted a Machine that no NodeClaim used', {
      Machine: hubText(hubKeyOf(machine)),
    })
  }

  /**
   * Records events on the node classes of its MachineDeployment, as the workload cluster has no other object for it.
   */
  #tellGivenBack(machine: Machine): void {
    const { hub, nodeClasses, events } = this.#deps
    const key = this.#deploymentKey(machine)
    const deployment = opened(hub.hub).caches.machineDeployments.get(key)
    if (deployment === undefined) return
    for (const object of nodeClasses.list().filter((each) => isSelected(each, deployment)))
      events.record({
        object,
        type: 'Normal',
        reason: 'MachineGivenBack',
        message: `Deleted Machine ${hubText(hubKeyOf(machine))} of MachineDeployment ${hubText(key)}, and its replica: it was made for a NodeClaim that does not need it`,
        dedupe: [uidOf(machine)],
      })
  }

  /** Whether pods may already run on its node, although it has no claim. */
  async #mayRunPods({ status }: Machine, signal: AbortSignal): Promise<boolean> {
    const name = status?.nodeRef?.name ?? ''
    if (name === '') return false
    const node = await this.#deps.kube.get(kinds.node, { name }, { signal })
    if (node === undefined) return false
    const isShut = node.spec?.taints?.some(({ key }) => key === unregistered) ?? false
    return !isShut || node.metadata.labels?.[labels.registered] === 'true'
  }
}

const unregistered = 'karpenter.sh/unregistered'

function uidOf({ metadata }: Machine): string {
  return metadata.uid ?? ''
}
