/** Opens the management cluster, however long that takes (cluster-api.md 14). */
import type { ResourceType } from '@tenon/api'
import {
  type AccessReviews,
  createCacheRegistry,
  isKubeError,
  isNotServed,
  type WatchingKubeClient,
} from '@tenon/kube'
import { type Clock, Listeners, type Logger, type Random } from '@tenon/runtime'
import { type ClusterApiNames, namesOf } from '../names.ts'
import { kindsOf, type ServedVersion, servedVersions } from '../objects.ts'
import { hubRights, rightText } from '../rights.ts'
import type { HubHealth } from './health.ts'
import type { Hub, HubScope, HubState, OpenHub } from './hub.ts'

const firstPauseMs = 1000
const longestPauseMs = 30_000
/** How often is told what the first lists wait for. */
const reportMs = 10_000

/** What a {@link HubConnection} works with. */
export interface HubConnectionOptions {
  readonly server: string
  readonly kube: WatchingKubeClient
  readonly scope: HubScope
  readonly group: string
  /** Absent to take the newest version that is served and understood. */
  readonly version?: ServedVersion
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Absent where the cluster is its own hub: without it nothing else works either. */
  readonly health?: HubHealth
  /** Absent where the cluster is its own hub: its rights are those of the service account. */
  readonly reviews?: AccessReviews
}

/** Waits for the hub's API and for the first lists, then is open for good: what is known stands while it is away. */
export class HubConnection implements Hub {
  readonly server: string
  readonly kube: WatchingKubeClient
  readonly names: ClusterApiNames
  readonly scope: HubScope
  readonly #options: HubConnectionOptions
  readonly #opened = new Listeners<OpenHub>()
  #hub: OpenHub | undefined
  #openedMs: number | undefined
  /** What it waits for. */
  #because: string

  constructor(options: HubConnectionOptions) {
    this.#options = options
    this.server = options.server
    this.kube = options.kube
    this.scope = options.scope
    this.names = namesOf(options.group)
    this.#because = `${options.server} has not been asked yet`
  }

  get state(): HubState {
    return this.#hub === undefined
      ? { kind: 'waiting', because: this.#because }
      : { kind: 'open', hub: this.#hub }
  }

  get awayUntilMs(): number | undefined {
    const { clock, health } = this.#options
    return this.#hub === undefined ? clock.now() : (health?.awayUntilMs ?? this.#openedMs)
  }

  onOpen(listener: (hub: OpenHub) => void): void {
    if (this.#hub !== undefined) listener(this.#hub)
    else this.#opened.add(listener)
  }

  /** Begins to open the hub; goes on until it is open, or `signal` aborts. */
  start(signal: AbortSignal): void {
    void this.#open(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { clock, group } = this.#options
    const version = await this.#served(signal)
    const kinds = kindsOf(group, version)
    const registry = createCacheRegistry({ ...this.#options, client: this.kube })
    // A role in one namespace allows no other lists.
    const { namespace } = this.scope
    const within = namespace === undefined ? {} : { namespace }
    const caches = {
      machineDeployments: registry.cache(kinds.machineDeployment, within),
      machines: registry.cache(kinds.machine, within),
      clusters: registry.cache(kinds.cluster, within),
    }
    registry.start(signal)
    void this.#tellMissingRights(signal)
    const report = async () => {
      if (this.#hub !== undefined || signal.aborted) return
      const waiting = Object.values(kinds).filter(({ plural }) => registry.waitingFor.includes(plural))
      this.#because =
        (await this.#refusal(waiting, signal)) ??
        `${this.server} has not listed ${registry.waitingFor.join(' and ')} yet`
      clock.after(reportMs, () => void report())
    }
    void report()
    await registry.synced(signal)
    const hub = { kinds, caches }
    this.#hub = hub
    this.#openedMs = clock.now()
    this.#options.logger.info('the management cluster has been read', {
      server: this.server,
      version,
      machineDeployments: caches.machineDeployments.size,
      machines: caches.machines.size,
    })
    this.#opened.notify(hub)
  }

  /** The version to use, once the hub serves one that is understood. */
  async #served(signal: AbortSignal): Promise<ServedVersion> {
    const { clock, logger, version } = this.#options
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      const probe: Probe = await this.#ask(version === undefined ? servedVersions : [version], signal)
      if (probe.kind === 'served') return probe.version
      const { message } = probe
      if (this.#because !== message)
        logger.warn('the management cluster cannot be used yet', { server: this.server, because: message })
      this.#because = message
      await clock.sleep(pauseMs, signal)
    }
  }

  /** Why one of the lists does not arrive, in the words of the server; undefined when it would. */
  async #refusal(types: readonly ResourceType[], signal: AbortSignal): Promise<string | undefined> {
    for (const type of types) {
      try {
        await this.#probe(type, signal)
      } catch (error) {
        if (isKubeError(error)) return this.#named(error.message)
      }
    }
    return undefined
  }

  /** In the log, as what is missing may be needed first in an hour. */
  async #tellMissingRights(signal: AbortSignal): Promise<void> {
    const { logger, reviews, scope } = this.#options
    if (reviews === undefined) return
    const missing: string[] = []
    try {
      for (const right of hubRights(scope.namespace))
        if (!(await reviews.isAllowed(right, undefined, signal))) missing.push(rightText(right))
    } catch (error) {
      // Nothing depends on the answers.
      if (!isKubeError(error)) return
    }
    if (missing.length > 0)
      logger.warn('the management cluster does not allow all that is needed: grant it', {
        server: this.server,
        missing,
      })
  }

  #named(message: string): string {
    return message.includes(this.server) ? message : `${this.server}: ${message}`
  }

  /** Nothing is wanted but an answer. */
  async #probe(type: ResourceType, signal: AbortSignal): Promise<void> {
    const { namespace } = this.scope
    const fieldSelector = 'metadata.name=tenon-asks-whether-this-is-served'
    await this.kube.list(type, { ...(namespace !== undefined && { namespace }), fieldSelector, signal })
  }

  async #ask(versions: readonly ServedVersion[], signal: AbortSignal): Promise<Probe> {
    const { group } = this.#options
    for (const version of versions) {
      try {
        await this.#probe(kindsOf(group, version).machineDeployment, signal)
        return { kind: 'served', version }
      } catch (error) {
        signal.throwIfAborted()
        if (!isKubeError(error)) throw error
        if (!isNotServed(error)) return { kind: 'missing', message: this.#named(error.message) }
      }
    }
    return {
      kind: 'missing',
      message: `${this.server} serves no MachineDeployments of ${group}/${versions.join(' or ')}: install Cluster API there, or name the management cluster with CLUSTER_API_KUBECONFIG`,
    }
  }
}

/** What the hub answered. */
type Probe =
  | { readonly kind: 'served'; readonly version: ServedVersion }
  | { readonly kind: 'missing'; readonly message: string }
