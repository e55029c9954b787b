/** Clever Kubernetes Engine as a provider (clever-cloud.md 8). */
import {
  admitsValue,
  formatResources,
  type InstanceType,
  labels,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  ownValue,
  type ResourceType,
} from '@tenon/api'
import { type Cache, isKubeError, type KubeClient } from '@tenon/kube'
import {
  allocatableOf,
  type CloudProvider,
  type NodeDefaults,
  type OfferingNews,
  ProviderError,
  type ProviderInstance,
  type ProviderMetric,
  type RepairPolicy,
  replaceUnready,
  singleValues,
  type SweepGuard,
  withProviderErrors,
} from '@tenon/provider'
import type { Listeners } from '@tenon/runtime'
import type { Catalogue } from './catalogue/catalogue.ts'
import { poolRules } from './catalogue/pool-rules.ts'
import type { CleverControllers } from './controllers.ts'
import type { Launcher } from './launch/launcher.ts'
import { nodeLabels } from './launch/node-labels.ts'
import type { CleverMetrics } from './metrics.ts'
import { firstNodeOf, nodeGroupIn, ownNames, providerIdOf } from './names.ts'
import { hashOf, hashVersion } from './nodeclass/hash.ts'
import { type CleverNodeClass, cleverNodeClassKind } from './nodeclass/types.ts'
import { isManaged, isOwnedBy, labelledClaim, owningClaims } from './nodegroup/ownership.ts'
import { flavorOf } from './nodegroup/spec.ts'
import { mayHoldCapacity } from './nodegroup/state.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

export interface CleverCloudDependencies {
  readonly kube: Pick<KubeClient, 'delete' | 'get' | 'list'>
  readonly nodeClasses: Pick<Cache<CleverNodeClass>, 'get'>
  readonly catalogue: Catalogue
  readonly launcher: Launcher
  readonly controllers: CleverControllers
  /** Reports to the core. */
  readonly reports: {
    readonly news: Listeners<OfferingNews>
    readonly metrics: CleverMetrics
  }
}

/** The provider `clevercloud`: a node is a NodeGroup of size one with the name of its claim. */
export class CleverCloudProvider implements CloudProvider {
  readonly name = 'clevercloud'
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [cleverNodeClassKind]
  readonly wellKnownLabels: readonly string[] = poolRules.wellKnownLabels
  readonly restrictedDomains: readonly string[] = poolRules.restrictedDomains
  readonly repairPolicies: readonly RepairPolicy[] = replaceUnready
  readonly #deps: CleverCloudDependencies

  constructor(deps: CleverCloudDependencies) {
    this.#deps = deps
  }

  get sweeps(): readonly SweepGuard[] {
    return this.#deps.controllers.sweeps
  }

  get metrics(): readonly ProviderMetric[] {
    return this.#deps.reports.metrics.all()
  }

  /** Hostnames and label values have at most 63 characters. */
  get claimNameLimit(): number {
    return 63 - firstNodeOf('').length
  }

  onOfferingNews(listener: (news: OfferingNews) => void): void {
    this.#deps.reports.news.add(listener)
  }

  currency(): string {
    return this.#deps.catalogue.priceUnit
  }

  ownsProviderID(providerID: string): boolean {
    return nodeGroupIn(providerID) !== undefined
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const { launcher, catalogue } = this.#deps
    const types = instanceTypes ?? catalogue.types()
    const group = await withProviderErrors(() => launcher.launch(claim, types, signal), signal)
    return this.#instanceOf(group, claim)
  }

  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    await withProviderErrors(() => this.#delete(claim, signal), signal)
  }

  async #delete(claim: NodeClaim, signal: AbortSignal | undefined): Promise<void> {
    const { kube, reports } = this.#deps
    const own = nodeGroupIn(claim.status?.providerID ?? '')
    const name = own ?? claim.metadata.name
    const group = await this.#read(name, signal)
    if (group === undefined) throw notFound(name)
    if (!isManaged(group)) {
      // The claim has a provider ID without a group, so the group is gone; a claim without an ID never had
      // this one.
      if (own === undefined) throw notFound(name)
      throw new ProviderError('other', `NodeGroup ${name} is not managed by Tenon: it is not deleted`)
    }
    if (own === undefined ? !isOwnedBy(group, claim) : !isClaimedBy(group, claim)) throw notFound(name)
    if (group.metadata.deletionTimestamp !== undefined) return
    const { uid } = group.metadata
    const options = {
      ...(signal !== undefined && { signal }),
      ...(uid !== undefined && { preconditionUid: uid }),
    }
    try {
      await kube.delete(nodeGroupKind, { name }, options)
    } catch (error) {
      if (isKubeError(error, 'notFound')) throw notFound(name)
      throw error
    }
    if (mayHoldCapacity(group)) reports.news.notify({ kind: 'released' })
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    const name = nodeGroupIn(providerID)
    if (name === undefined)
      throw new ProviderError('other', `"${providerID}" is not a provider ID of Clever Cloud`)
    const group = await withProviderErrors(() => this.#read(name, signal), signal)
    // The platform ends a group only after its Node is gone, and the Node waits for this call.
    if (group === undefined || !isManaged(group) || group.metadata.deletionTimestamp !== undefined)
      throw notFound(name)
    return this.#instanceOf(group)
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    const { kube } = this.#deps
    const labelSelector = { matchLabels: { [ownNames.managed]: 'true' } }
    const options = { labelSelector, ...(signal !== undefined && { signal }) }
    const groups = await withProviderErrors(() => kube.list(nodeGroupKind, options), signal)
    return groups.filter(isManaged).map((group) => this.#instanceOf(group))
  }

  getInstanceTypes(): Promise<readonly InstanceType[]> {
    return Promise.resolve(this.#deps.catalogue.types())
  }

  nodeDefaults({ spec }: NodePool): NodeDefaults {
    const nodeClass = this.#deps.nodeClasses.get({ name: spec.template.spec.nodeClassRef.name })
    return { labels: nodeLabels(nodeClass?.spec?.labels ?? {}, {}), taints: [] }
  }

  async isDrifted(claim: NodeClaim, signal?: AbortSignal): Promise<string | undefined> {
    const name = nodeGroupIn(claim.status?.providerID ?? '')
    const nodeClass = this.#deps.nodeClasses.get({ name: claim.spec.nodeClassRef.name })
    if (name === undefined || nodeClass === undefined) return undefined
    const group = await withProviderErrors(() => this.#read(name, signal), signal)
    const hash = ownValue(group?.metadata.annotations, ownNames.hash)
    // Hashes of other versions were computed differently.
    const version = ownValue(group?.metadata.annotations, ownNames.hashVersion) ?? 'v1'
    if (hash === undefined || version !== hashVersion) return undefined
    return hash === hashOf(nodeClass.spec) ? undefined : 'NodeClassDrifted'
  }

  startControllers(signal: AbortSignal): void {
    this.#deps.controllers.start(signal)
  }

  async #read(name: string, signal: AbortSignal | undefined): Promise<NodeGroup | undefined> {
    return await this.#deps.kube.get(nodeGroupKind, { name }, signal === undefined ? {} : { signal })
  }

  /** @param claim whose requirements decide labels with several possible values. */
  #instanceOf(group: NodeGroup, claim?: NodeClaim): ProviderInstance {
    const { metadata } = group
    const type = this.#typeOf(group)
    const nodeClaimName = claimOf(group)
    const nodePool = ownValue(metadata.labels, ownNames.nodePool)
    return {
      providerID: providerIdOf(metadata.name),
      labels: {
        ...singleValues(type.requirements),
        ...memoryLabel(type, claim),
        ...(nodePool !== undefined && { [labels.nodePool]: nodePool }),
      },
      capacity: formatResources(type.capacity),
      allocatable: formatResources(allocatableOf(type)),
      ...(nodeClaimName !== undefined && { nodeClaimName }),
      deleting: metadata.deletionTimestamp !== undefined,
      ...(metadata.creationTimestamp !== undefined && {
        createdAtMs: Date.parse(metadata.creationTimestamp),
      }),
    }
  }

  #typeOf(group: NodeGroup): InstanceType {
    const { catalogue, reports } = this.#deps
    const { isServed, type } = catalogue.typeOf(flavorOf(group))
    if (!isServed) reports.metrics.unknownFlavors.count()
    return type
  }
}

/**
 * The claim for which the group was created. The core deletes instances by this name, so a label, which a user may have
 * copied, is not enough.
 */
function claimOf(group: NodeGroup): string | undefined {
  const labelled = labelledClaim(group)
  return owningClaims(group).some(({ name }) => name === labelled) ? labelled : undefined
}

/** The value that the claim requires, if any; else the memory of the nodes. */
function memoryLabel({ requirements }: InstanceType, claim: NodeClaim | undefined): Record<string, string> {
  const key = ownNames.instanceMemory
  const values = requirements.find((each) => each.key === key)?.values ?? []
  const wanted = (claim?.spec.requirements ?? []).filter((each) => each.key === key)
  const value = values.find((each) => wanted.every((one) => admitsValue(one, each))) ?? values[0]
  return value === undefined ? {} : { [key]: value }
}

/** Whether its label or an owner reference names the claim, and the claim's provider ID names the group. */
function isClaimedBy(group: NodeGroup, { metadata: { name } }: NodeClaim): boolean {
  return labelledClaim(group) === name || owningClaims(group).some((owner) => owner.name === name)
}

function notFound(name: string): ProviderError {
  return new ProviderError('nodeClaimNotFound', `NodeGroup ${name} does not exist`)
}
