/** Connects to the management cluster, however long that takes (cluster-api.md 14). */
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
/** How often a wait for the first lists is logged. */
const reportMs = 10_000

export interface HubConnectionOptions {
  readonly server: string
  readonly kube: WatchingKubeClient
  readonly scope: HubScope
  readonly group: string
  /** Absent = the newest supported version that is served. */
  readonly version?: ServedVersion
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Absent if the cluster is its own hub, as nothing works while it is unreachable. */
  readonly health?: HubHealth
  /** Absent if the cluster is its own hub, whose permissions are those of the service account. */
  readonly reviews?: AccessReviews
}

/**
 * Waits for the hub's API and for the first lists. Stays open after that: known state is kept while the hub is
 * unreachable.
 */
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

  /** Retries until the hub is open or `signal` aborts. */
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
    // A Role in one namespace does not allow cluster-wide lists.
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

  /** The version to use, once the hub serves a supported one. */
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

  /** Why the server refuses one of the lists; undefined if it does not. */
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

  /** Logs missing permissions, which may otherwise be noticed much later. */
  async #tellMissingRights(signal: AbortSignal): Promise<void> {
    const { logger, reviews, scope } = this.#options
    if (reviews === undefined) return
    const missing: string[] = []
    try {
      for (const right of hubRights(scope.namespace))
        if (!(await reviews.isAllowed(right, undefined, signal))) missing.push(rightText(right))
    } catch (error) {
      // It is only a warning.
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

  /** Tries a list of one item. */
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

/** The result of a probe. */
type Probe =
  | { readonly kind: 'served'; readonly version: ServedVersion }
  | { readonly kind: 'missing'; readonly message: string }
