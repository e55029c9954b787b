/** A simulated cloud with the offerings of a catalogue. Its instances join the embedded cluster on virtual time. */
import {
  formatResources,
  type InstanceType,
  labels,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  type PricePerHour,
  type ResourceList,
  type ResourceType,
  unregisteredTaint,
  wellKnownLabels,
} from '@tenon/api'
import type { KubeletHandle, KubeletRunner } from '@tenon/devcluster'
import {
  allocatableOf,
  type CloudProvider,
  launchChoices,
  type NodeDefaults,
  type LaunchChoice,
  ProviderError,
  type ProviderInstance,
  singleValues,
} from '@tenon/provider'
import { type Clock, integerBetween, type Random } from '@tenon/runtime'
import type { Bill } from './bill.ts'
import { allTypes, type Catalogue, typesOf } from './catalogue.ts'

const providerIdPrefix = 'catalogue://'

/** How long instances take, in milliseconds. */
export interface CloudTimes {
  /** From launch until the Node registers. */
  readonly bootMs: number
  /** From the delete request until the instance is gone and no longer billed. */
  readonly stopMs: number
}

/** An instance that exists at the start of the play. */
export interface StandingInstance {
  readonly providerID: string
  readonly nodeName: string
  readonly claimName?: string
  readonly createdAtMs?: number
  readonly labels: Readonly<Record<string, string>>
  readonly capacity: ResourceList
  readonly allocatable: ResourceList
  readonly pricePerHour: PricePerHour
  readonly kubelet?: KubeletHandle
}

/** The provider's rules about labels and volumes of nodes. */
export type CloudTraits = Pick<
  CloudProvider,
  | 'restrictedLabels'
  | 'restrictedDomains'
  | 'labelAliases'
  | 'unsupportedProvisioners'
  | 'unsupportedTopologyKeys'
  | 'reservationLabel'
  | 'defaultTerminationGracePeriodMs'
> & { readonly wellKnownLabels?: readonly string[] }

export interface CatalogueCloudDependencies {
  readonly clock: Clock
  readonly random: Random
  readonly kubelets: KubeletRunner
  readonly catalogue: Catalogue
  /** Kinds of the node classes that NodePools and NodeClaims reference. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  readonly times: CloudTimes
  readonly bill: Bill
  readonly kubeletVersion: string
  readonly traits?: CloudTraits
}

interface Instance {
  readonly answer: Omit<ProviderInstance, 'deleting'>
  readonly pricePerHour: PricePerHour
  kubelet: KubeletHandle | undefined
  cancelBoot: (() => void) | undefined
  deleting: boolean
}

/** Launches any offering of the catalogue immediately and without limit. Instances do not drift by themselves. */
export class CatalogueCloud implements CloudProvider {
  readonly name = 'catalogue'
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  readonly wellKnownLabels: readonly string[]
  readonly repairPolicies = []
  readonly restrictedLabels: readonly string[]
  readonly restrictedDomains: readonly string[]
  readonly labelAliases: Readonly<Record<string, string>>
  readonly unsupportedProvisioners: readonly string[]
  readonly unsupportedTopologyKeys: readonly string[]
  readonly reservationLabel?: string
  readonly defaultTerminationGracePeriodMs?: number
  readonly #deps: CatalogueCloudDependencies
  readonly #catalogue: Catalogue
  readonly #instances = new Map<string, Instance>()
  readonly #byClaim = new Map<string, Instance>()
  #sequence = 0
  #launches = 0

  constructor(deps: CatalogueCloudDependencies) {
    this.#deps = deps
    this.#catalogue = deps.catalogue
    this.nodeClasses = deps.nodeClasses
    const { traits = {} } = deps
    const keys = [...choosableLabels(allTypes(deps.catalogue)), ...(traits.wellKnownLabels ?? [])]
    this.wellKnownLabels = [...new Set(keys)].toSorted()
    this.restrictedLabels = traits.restrictedLabels ?? []
    this.restrictedDomains = traits.restrictedDomains ?? []
    this.labelAliases = traits.labelAliases ?? {}
    this.unsupportedProvisioners = traits.unsupportedProvisioners ?? []
    this.unsupportedTopologyKeys = traits.unsupportedTopologyKeys ?? []
    if (traits.reservationLabel !== undefined) this.reservationLabel = traits.reservationLabel
    if (traits.defaultTerminationGracePeriodMs !== undefined)
      this.defaultTerminationGracePeriodMs = traits.defaultTerminationGracePeriodMs
  }

  /** Instances launched since the start. */
  get launches(): number {
    return this.#launches
  }

  /**
   * Takes over an existing instance.
   * @param joining its claim, if its Node has not registered yet.
   */
  adopt(standing: StandingInstance, joining?: NodeClaim): void {
    const { providerID, claimName, createdAtMs, capacity, allocatable, pricePerHour } = standing
    const instance: Instance = {
      answer: {
        providerID,
        labels: standing.labels,
        capacity,
        allocatable,
        ...(claimName !== undefined && { nodeClaimName: claimName }),
        ...(createdAtMs !== undefined && { createdAtMs }),
      },
      pricePerHour,
      kubelet: standing.kubelet,
      cancelBoot: undefined,
      deleting: false,
    }
    this.#enter(instance)
    if (joining !== undefined) this.#boot(instance, standing.nodeName, joining)
  }

  ownsProviderID(providerID: string): boolean {
    return this.#instances.has(providerID) || providerID.startsWith(providerIdPrefix)
  }

  create(
    claim: NodeClaim,
    _signal?: AbortSignal,
    types?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const known = this.#byClaim.get(claim.metadata.name)
    if (known !== undefined) return Promise.resolve(answerOf(known))
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    const choice = this.#choose(launchChoices(claim, types ?? typesOf(this.#catalogue, pool)))
    if (choice === undefined) {
      const why = `NodeClaim ${claim.metadata.name}: the catalogue has no available offering that it may take`
      return Promise.reject(new ProviderError('insufficientCapacity', why))
    }
    return Promise.resolve(answerOf(this.#launch(claim, choice)))
  }

  delete({ metadata, status }: NodeClaim): Promise<void> {
    const instance = this.#instances.get(status?.providerID ?? '') ?? this.#byClaim.get(metadata.name)
    if (instance === undefined) return Promise.reject(gone(`of NodeClaim ${metadata.name}`))
    this.end(instance.answer.providerID)
    return this.#instances.has(instance.answer.providerID)
      ? Promise.resolve()
      : Promise.reject(gone(instance.answer.providerID))
  }

  /** Stops an instance, whoever deletes it. */
  end(providerID: string): void {
    const instance = this.#instances.get(providerID)
    if (instance === undefined || instance.deleting) return
    instance.deleting = true
    instance.cancelBoot?.()
    const { clock, times } = this.#deps
    if (times.stopMs <= 0) this.#leave(instance)
    else clock.after(times.stopMs, () => this.#leave(instance))
  }

  get(providerID: string): Promise<ProviderInstance> {
    const instance = this.#instances.get(providerID)
    return instance === undefined ? Promise.reject(gone(providerID)) : Promise.resolve(answerOf(instance))
  }

  list(): Promise<readonly ProviderInstance[]> {
    const owned = [...this.#instances.values()].filter(({ answer }) => answer.nodeClaimName !== undefined)
    return Promise.resolve(owned.map(answerOf))
  }

  getInstanceTypes(pool: NodePool): Promise<readonly InstanceType[]> {
    return Promise.resolve(typesOf(this.#catalogue, pool.metadata.name))
  }

  nodeDefaults({ metadata }: NodePool): NodeDefaults {
    return this.#catalogue.defaults?.get(metadata.name) ?? { labels: {}, taints: [] }
  }

  isDrifted(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  startControllers(): void {
    // Node classes have no controller here, so all are ready.
  }

  /** The cheapest offering; random among zones of the same type and price. */
  #choose(choices: readonly LaunchChoice[]): LaunchChoice | undefined {
    const [first] = choices
    if (first === undefined) return undefined
    const equal = choices.filter(
      ({ type, offering }) => type === first.type && offering.pricePerHour === first.offering.pricePerHour,
    )
    return equal.length === 1 ? first : equal[integerBetween(this.#deps.random, 0, equal.length - 1)]
  }

  #launch(claim: NodeClaim, { type, offering }: LaunchChoice): Instance {
    const { clock } = this.#deps
    const nodeName = `${claim.metadata.name}-${this.#sequence++}`
    const allocatable = formatResources(nonZero(allocatableOf(type)))
    const instance: Instance = {
      answer: {
        providerID: `${providerIdPrefix}${nodeName}`,
        labels: {
          ...singleValues(type.requirements),
          ...singleValues(offering.requirements),
          [labels.instanceType]: type.name,
        },
        capacity: formatResources(nonZero(type.capacity)),
        allocatable,
        nodeClaimName: claim.metadata.name,
        createdAtMs: clock.now(),
      },
      pricePerHour: offering.pricePerHour,
      kubelet: undefined,
      cancelBoot: undefined,
      deleting: false,
    }
    this.#enter(instance)
    this.#launches++
    this.#boot(instance, nodeName, claim)
    return instance
  }

  #boot(instance: Instance, nodeName: string, claim: NodeClaim): void {
    const { clock, times } = this.#deps
    instance.cancelBoot = clock.after(times.bootMs, () => {
      instance.kubelet = this.#join(nodeName, claim, instance.answer)
    })
  }

  #join(
    nodeName: string,
    claim: NodeClaim,
    { providerID, labels: own, capacity, allocatable }: Instance['answer'],
  ): KubeletHandle {
    return this.#deps.kubelets.start({
      nodeName,
      providerId: providerID,
      labels: { ...claim.metadata.labels, ...singleValues(claim.spec.requirements), ...own },
      taints: [...(claim.spec.taints ?? []), ...(claim.spec.startupTaints ?? []), unregisteredTaint],
      capacity,
      allocatable,
      addresses: [],
      kubeletVersion: this.#deps.kubeletVersion,
      systemUuid: providerID,
    })
  }

  #enter(instance: Instance): void {
    const { answer, pricePerHour } = instance
    this.#instances.set(answer.providerID, instance)
    if (answer.nodeClaimName !== undefined) this.#byClaim.set(answer.nodeClaimName, instance)
    this.#deps.bill.add(this.#deps.clock.now(), pricePerHour)
  }

  #leave(instance: Instance): void {
    const { answer, pricePerHour } = instance
    if (!this.#instances.delete(answer.providerID)) return
    if (answer.nodeClaimName !== undefined) this.#byClaim.delete(answer.nodeClaimName)
    instance.kubelet?.stop()
    this.#deps.bill.remove(this.#deps.clock.now(), pricePerHour)
  }
}

function gone(what: string): ProviderError {
  return new ProviderError('nodeClaimNotFound', `no instance ${what}`)
}

function answerOf({ answer, deleting }: Instance): ProviderInstance {
  return { ...answer, deleting }
}

function nonZero(amounts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== 0))
}

/** Labels by which types and offerings differ, beyond the well-known ones. */
function choosableLabels(types: readonly InstanceType[]): readonly string[] {
  const keys = types.flatMap(({ requirements, offerings }) =>
    [...requirements, ...offerings.flatMap((offering) => offering.requirements)].map(({ key }) => key),
  )
  return [...new Set(keys)].filter((key) => !wellKnownLabels.includes(key))
}
