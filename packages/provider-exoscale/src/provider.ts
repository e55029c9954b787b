/** The provider `exoscale`: assembles its parts and implements the contract. */
import {
  type InstanceType,
  labels,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  type ResourceType,
} from '@tenon/api'
import type { Cache, Controller, ControllerOptions, EventRecorder, KubeClient } from '@tenon/kube'
import {
  type CloudProvider,
  type NodeDefaults,
  type OfferingNews,
  ProviderError,
  type ProviderInstance,
  type RepairPolicy,
  type SweepGuard,
} from '@tenon/provider'
import { Listeners, type Runtime } from '@tenon/runtime'
import type { ExoscaleClient } from './api/client.ts'
import { isApiError } from './api/errors.ts'
import { Catalogue, type CatalogueEntry } from './catalogue/catalogue.ts'
import { instanceTypesOf } from './catalogue/instance-types.ts'
import { type PriceFile, pricesByType } from './catalogue/prices.ts'
import { UnavailableOfferings } from './catalogue/unavailable-offerings.ts'
import { startProviderControllers } from './controllers.ts'
import { checkDrift } from './drift.ts'
import { providerErrorFrom } from './errors.ts'
import { Fleet } from './fleet/fleet.ts'
import { GarbageCollection } from './garbage-collection.ts'
import { choosableLabels, exoscaleAnnotations, parseProviderId, providerName } from './identifiers.ts'
import { BootRequests } from './launch/boot-requests.ts'
import { BootstrapTokens } from './launch/bootstrap-token.ts'
import { readCertificateAuthority } from './launch/certificate-authority.ts'
import { FullGroups } from './launch/full-groups.ts'
import { FirstHeartbeat } from './launch/first-heartbeat.ts'
import { InstanceCreation } from './launch/instance-creation.ts'
import { Introduction } from './launch/introduction.ts'
import { Launcher, maxNameLength } from './launch/launcher.ts'
import { Refusals } from './launch/refusals.ts'
import { TokenCleanup } from './launch/token-cleanup.ts'
import { TypeChoice } from './launch/type-choice.ts'
import { NodeClassDeletion } from './nodeclass/deletion.ts'
import { formerSettings } from './nodeclass/former-settings.ts'
import { diskSizeGib, kubeletSettings } from './nodeclass/settings.ts'
import { resolutionSteps } from './nodeclass/resolution-steps.ts'
import { NodeClassStatusController } from './nodeclass/status-controller.ts'
import { TemplateResolver } from './nodeclass/template.ts'
import {
  type ExoscaleNodeClass,
  exoscaleNodeClassKind,
  type ExoscaleNodeClassSpec,
} from './nodeclass/types.ts'
import type { ExoscaleOptions } from './options.ts'
import { SweepReport } from './sweep-report.ts'

const minute = 60_000

export interface ExoscaleProviderDependencies {
  readonly options: ExoscaleOptions
  readonly cloud: {
    /** From `connectExoscale`. */
    readonly api: ExoscaleClient
    /** Prices that replace the built-in ones. */
    readonly priceFile?: PriceFile
  }
  readonly kubernetes: {
    readonly client: KubeClient
    readonly events: EventRecorder
    readonly caches: ExoscaleCaches
  }
  /** How new nodes join. */
  readonly joining: {
    /** URL of the API server as new nodes use it; the option of the same name takes precedence. */
    readonly clusterEndpoint: string
    /** PEM; default: read from the cluster. */
    readonly certificateAuthority?: string
  }
  readonly runtime: Runtime
  /** Creates a controller without starting it. */
  readonly createController: (options: ControllerOptions) => Controller
}

interface ExoscaleCaches {
  readonly nodeClasses: Cache<ExoscaleNodeClass>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodes: Cache<Node>
}

/** Instances of Exoscale Compute that join an SKS cluster. */
class ExoscaleProvider implements CloudProvider {
  readonly name = providerName
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [exoscaleNodeClassKind]
  /** GPU labels are not included: claims may not require labels of the domain karpenter.sh. */
  readonly wellKnownLabels: readonly string[] = choosableLabels
  readonly repairPolicies: readonly RepairPolicy[] = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 15 * minute },
    { conditionType: 'DiskPressure', conditionStatus: 'True', tolerationMs: 10 * minute },
    { conditionType: 'MemoryPressure', conditionStatus: 'True', tolerationMs: 10 * minute },
    { conditionType: 'PIDPressure', conditionStatus: 'True', tolerationMs: 10 * minute },
    { conditionType: 'NetworkUnavailable', conditionStatus: 'True', tolerationMs: 5 * minute },
  ]
  readonly #deps: ExoscaleProviderDependencies
  readonly #catalogue: Catalogue
  readonly #unavailable: UnavailableOfferings
  /** The last result for each node class, with its inputs. */
  readonly #types = new WeakMap<
    ExoscaleNodeClassSpec,
    {
      readonly entries: readonly CatalogueEntry[]
      readonly shortages: string
      readonly types: readonly InstanceType[]
    }
  >()
  readonly #templates: TemplateResolver
  readonly #tokens: BootstrapTokens
  readonly #fleet: Fleet
  readonly #news = new Listeners<OfferingNews>()
  readonly #groups: FullGroups
  readonly #launcher: Launcher
  readonly #garbage: GarbageCollection

  constructor(deps: ExoscaleProviderDependencies) {
    const { options, cloud, kubernetes, runtime } = deps
    const { zone, clusterId } = options
    const { api } = cloud
    const { client: kube, caches } = kubernetes
    const { clock, logger } = runtime
    this.#deps = deps
    const prices = pricesByType(options.currency, cloud.priceFile)
    this.#catalogue = new Catalogue({ api, clock, logger, zone, prices, inUse: () => this.#typesInUse() })
    this.#unavailable = new UnavailableOfferings(clock)
    this.#templates = new TemplateResolver({ api, kube, clock })
    this.#tokens = new BootstrapTokens({ kube, ...runtime })
    this.#fleet = new Fleet({ api, catalogue: this.#catalogue, zone, clusterId })
    const report = new SweepReport({ ...caches, events: kubernetes.events, logger })
    this.#garbage = new GarbageCollection({ api, kube, fleet: this.#fleet, report, clock, logger })
    this.#groups = new FullGroups({ api, news: this.#news })
    this.#launcher = this.#createLauncher()
  }

  #createLauncher(): Launcher {
    const { options, cloud, kubernetes, joining, runtime } = this.#deps
    const { zone, clusterId } = options
    const { api } = cloud
    const { client: kube, caches } = kubernetes
    const { clock, logger } = runtime
    const unavailable = this.#unavailable
    const fleet = this.#fleet
    const cluster = {
      id: clusterId,
      domain: options.clusterDomain,
      endpoint: options.clusterEndpoint ?? joining.clusterEndpoint,
      certificateAuthority: async () => joining.certificateAuthority ?? readCertificateAuthority(kube),
    }
    const groups = this.#groups
    const boot = new BootRequests({
      groups,
      templates: this.#templates,
      tokens: this.#tokens,
      cluster,
      logger,
    })
    const refusals = new Refusals({ api, groups, unavailable, zone })
    const creation = new InstanceCreation({ api, kube, fleet, boot, refusals, clock, logger })
    return new Launcher({
      kube,
      nodeClasses: caches.nodeClasses,
      types: new TypeChoice({ catalogue: this.#catalogue, unavailable, zone }),
      creation,
      introduction: new Introduction({ api, kube, fleet, clock, logger }),
      instancePrefix: options.instancePrefix,
    })
  }

  get sweeps(): readonly SweepGuard[] {
    return this.#garbage.guards
  }

  currency(): string {
    return this.#deps.options.currency
  }

  readonly claimAnnotations: readonly string[] = [exoscaleAnnotations.instance]

  get claimNameLimit(): number {
    return maxNameLength - this.#deps.options.instancePrefix.length
  }

  onOfferingNews(listener: (news: OfferingNews) => void): void {
    this.#news.add(listener)
  }

  ownsProviderID(providerID: string): boolean {
    return parseProviderId(providerID).kind === 'instance'
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    return this.#speak(() => this.#launcher.launch(claim, signal, instanceTypes), signal)
  }

  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    return this.#speak(async () => {
      const ids = await this.#instanceIdsOf(claim, signal)
      const progress = await Promise.all(ids.map((id) => this.#fleet.delete(id, signal)))
      if (progress.every((state) => state === 'gone')) {
        throw new ProviderError('nodeClaimNotFound', `instance of NodeClaim ${claim.metadata.name} is gone`)
      }
    }, signal)
  }

  /** Only of an instance whose labels prove that it is the claim's. */
  async reboot(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    return this.#speak(async () => {
      const { api } = this.#deps.cloud
      const id = instanceIdIn(claim.status?.providerID ?? '')
      const instance = await notFoundIsGone(id, api.getInstance(id, signal))
      if (!this.#fleet.isOf(claim, instance))
        throw new ProviderError('other', `instance ${id} is not that of NodeClaim ${claim.metadata.name}`)
      await notFoundIsGone(id, api.rebootInstance(id, signal))
    }, signal)
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    return this.#speak(async () => {
      const id = instanceIdIn(providerID)
      return this.#fleet.describe(await notFoundIsGone(id, this.#deps.cloud.api.getInstance(id, signal)))
    }, signal)
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    return this.#speak(() => this.#fleet.list(signal), signal)
  }

  async getInstanceTypes(pool: NodePool, signal?: AbortSignal): Promise<readonly InstanceType[]> {
    return this.#speak(async () => {
      const nodeClass = this.#nodeClass(pool.spec.template.spec.nodeClassRef.name)
      return this.#typesFor(nodeClass.spec, (await this.#catalogue.view()).entries)
    }, signal)
  }

  /** Cached until an input changes, as types are requested many times a minute. */
  #typesFor(spec: ExoscaleNodeClassSpec, entries: readonly CatalogueEntry[]): readonly InstanceType[] {
    const shortages = this.#unavailable.fingerprint()
    const known = this.#types.get(spec)
    if (known?.entries === entries && known.shortages === shortages) return known.types
    const { kubeReserved, systemReserved } = kubeletSettings(spec)
    const types = instanceTypesOf(entries, {
      zone: this.#deps.options.zone,
      diskSizeGib: diskSizeGib(spec),
      kubeReserved,
      systemReserved,
      unavailability: (entry) => this.#unavailable.why(entry.name, entry.family),
      hasGpuDriver: this.#deps.options.gpuDevices !== undefined,
    })
    this.#types.set(spec, { entries, shortages, types })
    return types
  }

  nodeDefaults(pool: NodePool): NodeDefaults {
    const { name } = pool.spec.template.spec.nodeClassRef
    const nodeClass = this.#deps.kubernetes.caches.nodeClasses.get({ name })
    if (nodeClass === undefined) return { labels: {}, taints: [] }
    const { nodeLabels, nodeTaints } = formerSettings(nodeClass.spec)
    return { labels: nodeLabels, taints: nodeTaints }
  }

  kubeletVersion(pool: NodePool): string | undefined {
    const { name } = pool.spec.template.spec.nodeClassRef
    return this.#deps.kubernetes.caches.nodeClasses.get({ name })?.spec.imageTemplateSelector?.version
  }

  async isDrifted(claim: NodeClaim, signal?: AbortSignal): Promise<string | undefined> {
    return this.#speak(async () => {
      const nodeClass = this.#nodeClass(claim.spec.nodeClassRef.name)
      const id = instanceIdIn(claim.status?.providerID ?? '')
      const { options, cloud, kubernetes } = this.#deps
      const { client: kube, events } = kubernetes
      const deps = { api: cloud.api, kube, events, templates: this.#templates, clusterId: options.clusterId }
      return notFoundIsGone(id, checkDrift(deps, claim, nodeClass, id, signal))
    }, signal)
  }

  startControllers(signal: AbortSignal): void {
    const { cloud, kubernetes, runtime, createController } = this.#deps
    const { api } = cloud
    const { client: kube, events, caches } = kubernetes
    const { clock, logger } = runtime
    const deletion = new NodeClassDeletion({ kube, ...caches, garbage: this.#garbage, events })
    const steps = resolutionSteps({ api, templates: this.#templates, clock })
    const loops = {
      nodeClassStatus: new NodeClassStatusController({ kube, ...caches, steps, deletion, events, clock }),
      firstHeartbeat: new FirstHeartbeat({ kube, ...caches, events, clock }),
      tokenCleanup: new TokenCleanup({ kube, tokens: this.#tokens, caches, events, clock, logger }),
      garbage: this.#garbage,
      groups: this.#groups,
    }
    startProviderControllers({ loops, ...caches, createController }, signal)
  }

  *#typesInUse(): Iterable<string> {
    for (const { metadata, status } of this.#deps.kubernetes.caches.nodeClaims.list()) {
      const type = metadata.labels?.[labels.instanceType]
      if (type !== undefined && status?.providerID !== undefined) yield type
    }
  }

  #nodeClass(name: string): ExoscaleNodeClass {
    const nodeClass = this.#deps.kubernetes.caches.nodeClasses.get({ name })
    if (nodeClass === undefined) throw new ProviderError('other', `ExoscaleNodeClass ${name} does not exist`)
    return nodeClass
  }

  /**
   * By provider ID, else by label: a launch may have been interrupted before the ID was stored, and an ID without an
   * instance must not block the deletion.
   */
  async #instanceIdsOf(claim: NodeClaim, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const parsed = parseProviderId(claim.status?.providerID ?? '')
    if (parsed.kind === 'instance') return [parsed.instanceId]
    const instances = await this.#fleet.owned(signal)
    const made = this.#launcher.madeFor(claim)
    const labelled = instances.filter((owned) => owned.nodeClaimName === claim.metadata.name)
    return [...new Set([...labelled.map(({ id }) => id), ...(made === undefined ? [] : [made])])]
  }

  /** Only rejects with errors of the contract, or the caller's own abort. */
  async #speak<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await work()
    } catch (error) {
      signal?.throwIfAborted()
      throw providerErrorFrom(error)
    }
  }
}

/** Creates the provider; `startControllers` starts its own loops. */
export function createExoscaleProvider(deps: ExoscaleProviderDependencies): CloudProvider {
  return new ExoscaleProvider(deps)
}

function instanceIdIn(providerID: string): string {
  const parsed = parseProviderId(providerID)
  if (parsed.kind === 'instance') return parsed.instanceId
  throw new ProviderError('other', parsed.message)
}

async function notFoundIsGone<T>(id: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isApiError(error, 'not-found')) throw error
    throw new ProviderError('nodeClaimNotFound', `instance ${id} does not exist`, { cause: error })
  }
}
