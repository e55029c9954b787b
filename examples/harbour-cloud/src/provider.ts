/** Harbour Cloud as Tenon's core sees it. */
import {
  admitsValue,
  type Cache,
  type CloudProvider,
  formatResources,
  type InstanceType,
  isConditionTrue,
  isProviderError,
  labels,
  type NodeClaim,
  normalizedLabel,
  type Offering,
  type OfferingRef,
  parseResources,
  ProviderError,
  type ProviderInstance,
  type RepairPolicy,
} from '@tenon/provider'
import { allocatableOf, type Catalogue, cpusLabel } from './catalogue.ts'
import { type CloudApi, CloudError, type Server } from './cloud-api.ts'
import {
  type HarbourNodeClass,
  harbourNodeClass,
  type NodeClassDependencies,
  startNodeClassController,
} from './node-class.ts'
import { type JoinSettings, userData } from './user-data.ts'

/** Tags by which servers are found again, whatever has been forgotten. */
const tags = { cluster: 'tenon-cluster', nodeClaim: 'tenon-node-claim' } as const
/** On a NodeClaim: id of the image that its server was made from. */
const imageAnnotation = 'harbour.example.com/image'

const providerIDForm = /^harbour:\/\/([0-9a-f-]{36})$/

export interface HarbourDependencies extends NodeClassDependencies {
  readonly catalogue: Catalogue
  /** Tells this cluster's servers from those of others in the same account. */
  readonly cluster: string
  readonly join: Pick<JoinSettings, 'server' | 'token'>
}

/** A way to launch a node, with the labels that it would have. */
interface Choice {
  readonly type: InstanceType
  readonly offering: Offering
  readonly labels: Readonly<Record<string, string>>
  readonly ref: OfferingRef
}

export class HarbourProvider implements CloudProvider {
  readonly name = 'harbour'
  readonly nodeClasses = [harbourNodeClass]
  readonly wellKnownLabels = [cpusLabel]
  /** Nodes that have not been ready for so long are replaced. */
  readonly repairPolicies: readonly RepairPolicy[] = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 10 * 60_000 },
    { conditionType: 'Ready', conditionStatus: 'Unknown', tolerationMs: 10 * 60_000 },
  ]
  readonly #deps: HarbourDependencies
  readonly #api: CloudApi
  readonly #nodeClasses: Pick<Cache<HarbourNodeClass>, 'get'>

  constructor(deps: HarbourDependencies) {
    this.#deps = deps
    this.#api = deps.api
    this.#nodeClasses = deps.nodeClasses
  }

  ownsProviderID(providerID: string): boolean {
    return providerIDForm.test(providerID)
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    return await inContractWords(async () => {
      // This may be the second call for the claim: the first may have been cut off, or its answer lost.
      const existing = (await this.#ownServers(signal)).find(
        (server) => server.tags[tags.nodeClaim] === claim.metadata.name && server.state !== 'deleting',
      )
      if (existing !== undefined) return await this.#described(existing)
      const image = this.#imageFor(claim)
      const types = instanceTypes ?? (await this.#deps.catalogue.types())
      return await this.#described(await this.#launch(claim, image, choicesFor(claim, types), signal))
    })
  }

  /** Orders the cheapest that is to be had. */
  async #launch(
    claim: NodeClaim,
    image: string,
    choices: readonly Choice[],
    signal: AbortSignal | undefined,
  ): Promise<Server> {
    const { cluster, join, catalogue } = this.#deps
    const { name } = claim.metadata
    for (const { labels: nodeLabels, ref } of choices) {
      try {
        return await this.#api.createServer(
          {
            name,
            size: ref.instanceType,
            zone: ref.zone,
            image,
            tags: { [tags.cluster]: cluster, [tags.nodeClaim]: name },
            userData: userData({ ...join, labels: nodeLabels }),
          },
          signal,
        )
      } catch (error) {
        if (!(error instanceof CloudError) || error.code !== 'sold_out') throw error
        catalogue.markSoldOut(ref.instanceType, ref.zone)
      }
    }
    throw new ProviderError('insufficientCapacity', `nothing that ${name} allows is to be had`, {
      offerings: choices.map(({ ref }) => ref),
    })
  }

  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    await inContractWords(async () => {
      const id = providerIDForm.exec(claim.status?.providerID ?? '')?.[1]
      const servers =
        id === undefined
          ? (await this.#ownServers(signal)).filter(
              (server) => server.tags[tags.nodeClaim] === claim.metadata.name,
            )
          : [await this.#ownServer(id, signal)]
      if (servers.length === 0)
        throw new ProviderError('nodeClaimNotFound', `${claim.metadata.name} has no server`)
      for (const server of servers)
        if (server.state !== 'deleting') await this.#api.deleteServer(server.id, signal)
    })
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    return await inContractWords(async () => {
      const id = providerIDForm.exec(providerID)?.[1]
      if (id === undefined) throw new ProviderError('nodeClaimNotFound', `${providerID} is no id of Harbour`)
      return await this.#described(await this.#ownServer(id, signal))
    })
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    return await inContractWords(async () => {
      const servers = await this.#ownServers(signal)
      return await Promise.all(servers.map((server) => this.#described(server)))
    })
  }

  async getInstanceTypes(): Promise<readonly InstanceType[]> {
    return await inContractWords(() => this.#deps.catalogue.types())
  }

  async isDrifted(claim: NodeClaim): Promise<string | undefined> {
    const wanted = this.#nodeClasses.get({ name: claim.spec.nodeClassRef.name })?.status?.imageID
    const actual = claim.metadata.annotations?.[imageAnnotation]
    // Reads what is at hand: this is asked of every claim again and again.
    return await Promise.resolve(
      wanted !== undefined && actual !== undefined && wanted !== actual ? 'ImageDrift' : undefined,
    )
  }

  startControllers(signal: AbortSignal): void {
    startNodeClassController(this.#deps, signal)
  }

  #imageFor(claim: NodeClaim): string {
    const { name } = claim.spec.nodeClassRef
    const nodeClass = this.#nodeClasses.get({ name })
    if (nodeClass === undefined || nodeClass.metadata.deletionTimestamp !== undefined)
      throw new ProviderError('insufficientCapacity', `HarbourNodeClass "${name}" does not exist`)
    const image = nodeClass.status?.imageID
    if (image === undefined || !isConditionTrue(nodeClass, 'Ready'))
      throw new ProviderError('nodeClassNotReady', `HarbourNodeClass "${name}" is not ready`)
    return image
  }

  async #ownServers(signal?: AbortSignal): Promise<readonly Server[]> {
    return (await this.#api.servers(signal)).filter((server) => this.#isOwn(server))
  }

  async #ownServer(id: string, signal?: AbortSignal): Promise<Server> {
    const server = await this.#api.server(id, signal)
    if (this.#isOwn(server)) return server
    throw new ProviderError('nodeClaimNotFound', `server ${id} belongs to another cluster`)
  }

  #isOwn(server: Server): boolean {
    return server.tags[tags.cluster] === this.#deps.cluster
  }

  async #described(server: Server): Promise<ProviderInstance> {
    const type = (await this.#deps.catalogue.types()).find(({ name }) => name === server.size)
    const offering = type?.offerings.find((each) => valueOf(each.requirements, labels.zone) === server.zone)
    const nodeClaimName = server.tags[tags.nodeClaim]
    return {
      providerID: `harbour://${server.id}`,
      imageID: server.image,
      // A size that is sold no more is not in the catalogue; its servers are still there.
      labels:
        type === undefined || offering === undefined
          ? { [labels.instanceType]: server.size, [labels.zone]: server.zone }
          : labelsOf(type, offering),
      annotations: { [imageAnnotation]: server.image },
      capacity: type === undefined ? {} : formatResources(type.capacity),
      allocatable: type === undefined ? {} : formatResources(allocatableOf(type)),
      ...(nodeClaimName !== undefined && { nodeClaimName }),
      createdAtMs: Date.parse(server.createdAt),
      deleting: server.state === 'deleting',
    }
  }
}

/** What the claim allows and the pods that it was made for fit on, the cheapest first. */
function choicesFor(claim: NodeClaim, types: readonly InstanceType[]): readonly Choice[] {
  const requests = Object.entries(parseResources(claim.spec.resources?.requests))
  return types
    .filter((type) => {
      const allocatable = allocatableOf(type)
      return requests.every(([resource, amount]) => amount <= (allocatable[resource] ?? 0))
    })
    .flatMap((type) =>
      type.offerings
        .filter(({ available }) => available)
        .map((offering): Choice => {
          const nodeLabels = labelsOf(type, offering)
          const zone = valueOf(offering.requirements, labels.zone)
          const capacityType = valueOf(offering.requirements, labels.capacityType)
          return { type, offering, labels: nodeLabels, ref: { instanceType: type.name, zone, capacityType } }
        }),
    )
    .filter((choice) =>
      claim.spec.requirements.every((requirement) => {
        const value = choice.labels[normalizedLabel(requirement.key)]
        // Other labels come from the claim itself.
        return value === undefined || admitsValue(requirement, value)
      }),
    )
    .toSorted((a, b) => (a.offering.pricePerHour ?? Infinity) - (b.offering.pricePerHour ?? Infinity))
}

function labelsOf(type: InstanceType, offering: Offering): Readonly<Record<string, string>> {
  const all = [...type.requirements, ...offering.requirements]
  return Object.fromEntries(all.map(({ key, values = [] }) => [key, values[0] ?? '']))
}

function valueOf(requirements: Offering['requirements'], key: string): string {
  return requirements.find((each) => each.key === key)?.values?.[0] ?? ''
}

/** Runs `work`; whatever it fails with becomes an error of the contract, which decides what Tenon does next. */
async function inContractWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (isProviderError(cause)) throw cause
    if (!(cause instanceof CloudError)) throw new ProviderError('other', String(cause), { cause })
    const { status, message, retryAfterMs } = cause
    const details = { cause, ...(retryAfterMs !== undefined && { retryAfterMs }) }
    if (status === 404) throw new ProviderError('nodeClaimNotFound', message, details)
    if (status === 401 || status === 403) throw new ProviderError('unauthorized', message, details)
    if (status === 429) throw new ProviderError('throttled', message, details)
    if (status >= 400 && status < 500)
      throw new ProviderError('create', message, { ...details, reason: 'OrderRefused' })
    throw new ProviderError('other', message, details)
  }
}
