/** Clusters managed by Cluster API as a provider (cluster-api.md 7, 10 to 12). */
import {
  formatResources,
  type InstanceType,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  ownValue,
  type ResourceType,
  type Taint,
} from '@tenon/api'
import type { Cache } from '@tenon/kube'
import {
  type CloudProvider,
  type OfferingNews,
  ProviderError,
  type ProviderInstance,
  type ProviderMetric,
  type RepairPolicy,
  replaceUnready,
  type SweepGuard,
  withProviderErrors,
} from '@tenon/provider'
import type { Listeners } from '@tenon/runtime'
import { hubKeyOf, hubText } from './hub/keys.ts'
import type { Catalogue } from './catalogue/catalogue.ts'
import { poolRules } from './catalogue/pool-rules.ts'
import type { ClusterApiControllers } from './controllers.ts'
import type { Hub } from './hub/hub.ts'
import { type HubReads, opened } from './hub/objects-of-hub.ts'
import { bindingOf, isOfOther } from './machines/binding.ts'
import { isReleased, templateHasMember } from './machines/balance.ts'
import type { Launcher } from './machines/launcher.ts'
import type { MachineFinder } from './machines/machine-finder.ts'
import type { Releaser } from './machines/releaser.ts'
import { isOnDelete } from './machines/shrinking.ts'
import type { ClusterApiMetrics } from './metrics.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from './node-class.ts'
import type { Machine, MachineDeployment } from './objects.ts'

export interface ClusterApiDependencies {
  readonly view: {
    readonly hub: Hub
    readonly reads: HubReads
    readonly identity: () => Promise<string>
    readonly nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'get'>
    /** The core listens to them. */
    readonly news: Listeners<OfferingNews>
    readonly metrics: ClusterApiMetrics
  }
  readonly catalogue: Catalogue
  readonly machines: MachineFinder
  readonly launcher: Launcher
  readonly releaser: Releaser
  readonly controllers: ClusterApiControllers
}

/** The provider `clusterapi`: a node is a Machine of a MachineDeployment. */
export class ClusterApiProvider implements CloudProvider {
  readonly name = 'clusterapi'
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [clusterAPINodeClassKind]
  readonly wellKnownLabels: readonly string[] = poolRules.wellKnownLabels
  readonly restrictedDomains: readonly string[] = poolRules.restrictedDomains
  /** Reads use no cache. */
  readonly readsOwnWrites = true
  readonly repairPolicies: readonly RepairPolicy[] = replaceUnready
  readonly #deps: ClusterApiDependencies

  constructor(deps: ClusterApiDependencies) {
    this.#deps = deps
  }

  /** On a Node the annotation has another form, and Cluster API sets it. */
  get claimAnnotations(): readonly string[] {
    return [this.#deps.view.hub.names.machine]
  }

  /** Kubelets register with it if the bootstrap provider is kubeadm. */
  get startupTaints(): readonly Taint[] {
    return [{ key: this.#deps.view.hub.names.uninitialized, effect: 'NoSchedule' }]
  }

  get sweeps(): readonly SweepGuard[] {
    return this.#deps.controllers.sweeps
  }

  get metrics(): readonly ProviderMetric[] {
    return this.#deps.view.metrics.all()
  }

  waitsFor(): string | undefined {
    const { state } = this.#deps.view.hub
    return state.kind === 'open' ? undefined : `the management cluster has not been read: ${state.because}`
  }

  awayUntilMs(): number | undefined {
    return this.#deps.view.hub.awayUntilMs
  }

  currency(): string | undefined {
    return this.#deps.catalogue.currency
  }

  /** Every infrastructure provider has its own form. */
  ownsProviderID(providerID: string): boolean {
    return providerID !== ''
  }

  onOfferingNews(listener: (news: OfferingNews) => void): void {
    this.#deps.view.news.add(listener)
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const { launcher } = this.#deps
    const machine = await withProviderErrors(() => launcher.launch(claim, instanceTypes, signal), signal)
    return await this.#instanceOf(machine)
  }

  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    await withProviderErrors(() => this.#deps.releaser.release(claim, signal), signal)
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    if (providerID === '') throw new ProviderError('other', 'a provider ID is needed')
    const found = await withProviderErrors(
      () => this.#deps.machines.withProviderID(providerID, signal),
      signal,
    )
    const [machine] = found
    if (machine === undefined)
      throw new ProviderError('nodeClaimNotFound', `no Machine has the provider ID ${providerID}`)
    return await this.#instanceOf(machine)
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    const { reads, identity } = this.#deps.view
    const [machines, cluster] = await withProviderErrors(
      () => Promise.all([reads.machines(true, signal), identity()]),
      signal,
    )
    const own = machines.filter(
      (machine) =>
        (machine.spec?.providerID ?? '') !== '' && this.#isBound(machine) && !isOfOther(machine, cluster),
    )
    return await Promise.all(own.map((machine) => this.#instanceOf(machine)))
  }

  async getInstanceTypes(pool: NodePool): Promise<readonly InstanceType[]> {
    return await this.#deps.catalogue.typesOf(pool)
  }

  /** Only Machines that Cluster API does not replace itself can drift. */
  async isDrifted(claim: NodeClaim, signal?: AbortSignal): Promise<string | undefined> {
    const { nodeClasses } = this.#deps.view
    const nodeClass = nodeClasses.get({ name: claim.spec.nodeClassRef.name })
    const providerID = claim.status?.providerID ?? ''
    if (providerID === '' || nodeClass === undefined || nodeClass.spec?.driftPolicy === 'Ignore')
      return undefined
    const [machine] = await withProviderErrors(
      () => this.#deps.machines.withProviderID(providerID, signal),
      signal,
    )
    const deployment = machine && this.#deploymentOf(machine)
    if (machine === undefined || deployment === undefined || !isOnDelete(deployment)) return undefined
    const { status } = machine
    const conditions = status?.v1beta2?.conditions ?? status?.conditions ?? []
    const isOutdated = conditions.some(({ type, status: value }) => type === 'UpToDate' && value === 'False')
    return isOutdated ? 'MachineNotUpToDate' : undefined
  }

  startReading(signal: AbortSignal): void {
    this.#deps.controllers.startReading(signal)
  }

  startControllers(signal: AbortSignal): void {
    this.#deps.controllers.start(signal)
  }

  #isBound(machine: Machine): boolean {
    const deployment = this.#deploymentOf(machine)
    const isTemplateMember =
      deployment !== undefined && templateHasMember(deployment, this.#deps.view.hub.names)
    return bindingOf(machine, this.#deps.view.hub.names, isTemplateMember).kind !== 'free'
  }

  #deploymentOf(machine: Machine): MachineDeployment | undefined {
    const { hub } = this.#deps.view
    const name = ownValue(machine.metadata.labels, hub.names.deploymentName) ?? ''
    const { namespace } = hubKeyOf(machine)
    return name === '' ? undefined : opened(hub).caches.machineDeployments.get({ namespace, name })
  }

  async #instanceOf(machine: Machine): Promise<ProviderInstance> {
    const { hub } = this.#deps.view
    const binding = bindingOf(machine, hub.names)
    const { creationTimestamp, deletionTimestamp } = machine.metadata
    const deployment = this.#deploymentOf(machine)
    const shape = await this.#shapeOf(machine)
    return {
      providerID: machine.spec?.providerID ?? '',
      ...shape,
      annotations: { [hub.names.machine]: hubText(hubKeyOf(machine)) },
      ...(binding.kind === 'bound' && { nodeClaimName: binding.claimName }),
      deleting:
        deletionTimestamp !== undefined ||
        (deployment !== undefined && isReleased(deployment, machine, hub.names)),
      ...(creationTimestamp !== undefined && { createdAtMs: Date.parse(creationTimestamp) }),
    }
  }

  /** From its MachineDeployment; empty if that is gone or incomplete. */
  async #shapeOf(machine: Machine): Promise<Pick<ProviderInstance, 'labels' | 'capacity' | 'allocatable'>> {
    const deployment = this.#deploymentOf(machine)
    const reading = deployment && (await this.#deps.catalogue.reading(deployment))
    if (reading?.kind !== 'participant') return { labels: {}, capacity: {}, allocatable: {} }
    const { labels, capacity } = reading.participant
    const amounts = formatResources(capacity)
    return { labels, capacity: amounts, allocatable: amounts }
  }
}
