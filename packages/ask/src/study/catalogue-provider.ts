/** The provider of a snapshot: lists offerings, but launches nothing. */
import { karpenterKinds, type NodeClass, type NodePool, type ResourceType } from '@tenon/api'
import { type CloudProvider, type NodeDefaults, ProviderError } from '@tenon/provider'
import type { Snapshot, SnapshotCatalogue } from '../snapshot/snapshot.ts'

export class CatalogueProvider implements CloudProvider {
  readonly name: string
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  readonly wellKnownLabels: readonly string[]
  readonly repairPolicies: CloudProvider['repairPolicies']
  readonly restrictedLabels: readonly string[]
  readonly restrictedDomains: readonly string[]
  readonly labelAliases: Readonly<Record<string, string>>
  readonly unsupportedProvisioners: readonly string[]
  readonly unsupportedTopologyKeys: readonly string[]
  readonly reservationLabel?: string
  readonly defaultTerminationGracePeriodMs?: number
  readonly currency: () => string | undefined
  readonly #byPool: ReadonlyMap<string, SnapshotCatalogue>
  /** By node class, for NodePools that did not exist when the snapshot was taken. */
  readonly #byNodeClass: ReadonlyMap<string, SnapshotCatalogue>

  constructor({ cloud, catalogues, objects }: Pick<Snapshot, 'cloud' | 'catalogues' | 'objects'>) {
    this.name = cloud.name
    this.nodeClasses = cloud.nodeClasses
    this.wellKnownLabels = cloud.wellKnownLabels
    this.repairPolicies = cloud.repairPolicies
    this.restrictedLabels = cloud.restrictedLabels ?? []
    this.restrictedDomains = cloud.restrictedDomains ?? []
    this.labelAliases = cloud.labelAliases ?? {}
    this.unsupportedProvisioners = cloud.unsupportedProvisioners ?? []
    this.unsupportedTopologyKeys = cloud.unsupportedTopologyKeys ?? []
    if (cloud.reservationLabel !== undefined) this.reservationLabel = cloud.reservationLabel
    if (cloud.defaultTerminationGracePeriodMs !== undefined)
      this.defaultTerminationGracePeriodMs = cloud.defaultTerminationGracePeriodMs
    this.currency = () => cloud.priceUnit
    this.#byPool = new Map(catalogues.flatMap((each) => each.nodePools.map((name) => [name, each] as const)))
    this.#byNodeClass = new Map(
      objects.flatMap((object) => {
        if (object.kind !== karpenterKinds.nodePool.kind) return []
        const catalogue = this.#byPool.get(object.metadata.name)
        return catalogue === undefined ? [] : [[nodeClassOf(object as NodePool), catalogue] as const]
      }),
    )
  }

  getInstanceTypes(pool: NodePool): ReturnType<CloudProvider['getInstanceTypes']> {
    const catalogue = this.#catalogueOf(pool)
    if (catalogue?.instanceTypes !== undefined) return Promise.resolve(catalogue.instanceTypes)
    const why = catalogue?.problem ?? `the snapshot has no instance types for node class ${nodeClassOf(pool)}`
    return Promise.reject(new ProviderError('other', why))
  }

  nodeDefaults(pool: NodePool): NodeDefaults {
    return this.#catalogueOf(pool)?.defaults ?? { labels: {}, taints: [] }
  }

  kubeletVersion(pool: NodePool): string | undefined {
    return this.#catalogueOf(pool)?.kubeletVersion
  }

  ownsProviderID(): boolean {
    return true
  }

  create(): Promise<never> {
    return sellsNothing()
  }

  delete(): Promise<never> {
    return sellsNothing()
  }

  get(): Promise<never> {
    return sellsNothing()
  }

  list(): Promise<never> {
    return sellsNothing()
  }

  /** Unknown: the cloud cannot be asked. */
  isDrifted(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  startControllers(): void {}

  #catalogueOf(pool: NodePool): SnapshotCatalogue | undefined {
    return this.#byPool.get(pool.metadata.name) ?? this.#byNodeClass.get(nodeClassOf(pool))
  }
}

function nodeClassOf({ spec }: NodePool): string {
  const { kind, name } = spec.template.spec.nodeClassRef
  return `${kind}/${name}`
}

function sellsNothing(): Promise<never> {
  return Promise.reject(new ProviderError('other', 'a snapshot has no cloud to ask'))
}
