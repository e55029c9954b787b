/** Machines that no NodeClaim needs (cluster-api.md trap 7). */
import { karpenterKinds, kinds, labels, type NodeClaim, ownValue } from '@tenon/api'
import type { KubeClient, ReconcileResult } from '@tenon/kube'
import { heldMessage, SweepGuard } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { membersOf } from '../catalogue/members.ts'
import { hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import { opened, type HubReads } from '../hub/objects-of-hub.ts'
import type { ClusterApiMetrics } from '../metrics.ts'
import type { Machine } from '../objects.ts'
import { stockOf, surplusOf } from './balance.ts'
import { bindingOf, isOfOther } from './binding.ts'
import type { Deployments } from './deployments.ts'
import type { Releaser } from './releaser.ts'

const periodMs = 60_000
/** How long every pass must find that a Machine has no claim. */
const orphanMs = 2 * 60_000
/** The same for Machines that were never bound: launches may be about to. */
const surplusMs = 5 * 60_000

/** What a {@link MachineSweep} works with. */
export interface MachineSweepDependencies {
  readonly hub: HubView
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly releaser: Pick<Releaser, 'give'>
  readonly metrics: Pick<ClusterApiMetrics, 'reaped' | 'givenBack'>
  readonly process: { readonly clock: Clock; readonly logger: Logger }
}

/** The hub as the sweep sees it. */
interface HubView {
  readonly hub: Hub
  readonly reads: HubReads
  readonly deployments: Pick<Deployments, 'waiting'>
  readonly identity: () => Promise<string>
}

/** Sweeps Machines. Nothing goes based on one list: each is looked at again, and so is its claim. */
export class MachineSweep {
  readonly guard: SweepGuard
  readonly #deps: MachineSweepDependencies
  /** Since when Machines have been found without a claim, by UID; monotonic milliseconds. */
  readonly #since = new Map<string, number>()

  constructor(deps: MachineSweepDependencies) {
    this.#deps = deps
    this.guard = new SweepGuard({ clock: deps.process.clock, name: 'clusterapi_machines', graceMs: orphanMs })
  }

  /** @throws AggregateError of what failed, after everything else was done. */
  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { hub } = this.#deps.hub
    // There is nothing to sweep with before.
    if (hub.state.kind !== 'open') return { kind: 'after', delayMs: periodMs }
    const { reads } = this.#deps.hub
    const machines = await reads.machines(false, signal)
    const claims = await this.#deps.kube.list(karpenterKinds.nodeClaim, { signal })
    const orphans = await this.#orphans(machines, claims)
    const surplus = await this.#shut(this.#surplus(machines), signal)
    const found = [...orphans, ...surplus]
    this.#remember(found)
    const ripe = [
      ...orphans.filter((machine) => this.#ageMs(machine) >= orphanMs),
      ...surplus.filter((machine) => this.#ageMs(machine) >= surplusMs),
    ]
    const round = this.guard.admit(ripe.map(uidOf), machines.length)
    if (round.held.length > 0)
      this.#deps.process.logger.warn(heldMessage('Machines have no NodeClaim', round, machines.length), {
        held: round.held.slice(0, 20),
      })
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

  /** Machines bound by this installation to claims that are not there. */
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

  /** Machines that were made for claims and that none has taken. */
  #surplus(machines: readonly Machine[]): readonly Machine[] {
    const { hub, deployments } = this.#deps.hub
    const { names, scope } = hub
    // One that its user has taken back is left alone, with all its Machines.
    const membership = membersOf(opened(hub).caches.machineDeployments.list(), names, scope)
    if (membership.kind === 'refused') return []
    const owned = Map.groupBy(machines, (machine) =>
      hubText({ ...hubKeyOf(machine), name: ownValue(machine.metadata.labels, names.deploymentName) ?? '' }),
    )
    return membership.deployments.flatMap((deployment) => {
      const key = hubKeyOf(deployment)
      const stock = stockOf(deployment, owned.get(hubText(key)) ?? [], names)
      return surplusOf(deployment, stock, deployments.waiting(key))
    })
  }

  /** Those on which there are no pods for sure. */
  async #shut(machines: readonly Machine[], signal: AbortSignal): Promise<readonly Machine[]> {
    const isOpen = await Promise.all(machines.map((machine) => this.#mayRunPods(machine, signal)))
    return machines.filter((_machine, index) => isOpen[index] === false)
  }

  #remember(found: readonly Machine[]): void {
    const uids = new Set(found.map(uidOf))
    for (const uid of this.#since.keys()) if (!uids.has(uid)) this.#since.delete(uid)
    const now = this.#deps.process.clock.monotonic()
    for (const uid of uids) if (!this.#since.has(uid)) this.#since.set(uid, now)
  }

  #ageMs(machine: Machine): number {
    const now = this.#deps.process.clock.monotonic()
    return now - (this.#since.get(uidOf(machine)) ?? now)
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
    metrics.givenBack.count()
    process.logger.info('deleted a Machine that no NodeClaim used', {
      Machine: hubText(hubKeyOf(machine)),
    })
  }

  /** Whether pods may be on its node already, although no claim stands for it. */
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
