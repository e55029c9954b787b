/** Checks that the API server is that of the cluster to which the instances belong (reports-2.md 2). */
import { kinds, type Lease, type Namespace } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import { type EventRecorder, isKubeError, type KubeClient, type ObjectKey } from '../contract.ts'

/** Annotation of the lease: UID of namespace `kube-system`, or of {@link rootCa}, of the cluster that launches. */
export const identityAnnotation = 'tenon.sh/cluster-identity'

/** Every cluster has this namespace, with a UID of its own. */
export const identityNamespace: ObjectKey = { name: 'kube-system' }

/**
 * Read instead by whoever may read no namespaces, as with some manifests of Cluster Autoscaler: Kubernetes puts it into
 * every namespace.
 */
const rootCa: ObjectKey = { namespace: 'kube-system', name: 'kube-root-ca.crt' }
const rootCaPrefix = 'configmap/'

const unreadNamespace: Namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: identityNamespace }

/** How a cluster is recognized. */
export interface IdentitySettings {
  /** Where the identity is stored between processes; absent without leader election. */
  readonly lease?: ObjectKey
  /** How the lease is written: `update` needs no permission to patch. Default `patch`. */
  readonly writes?: 'patch' | 'update'
  /** Whether the user has confirmed that this is the right cluster. */
  readonly isAccepted: boolean
}

export interface IdentityDependencies {
  readonly client: Pick<KubeClient, 'get' | 'list' | 'patch' | 'update'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: IdentitySettings
}

const periodMs = 60_000
/** How long a check is valid for further removals. */
const freshMs = 10_000
const logPauseMs = 60_000
const remedy =
  'nothing is removed; check the kubeconfig, and start once with --accept-cluster-identity if this is the right cluster'

/** The state before the first check, which needs no action yet. */
const notReadYet = 'the identity of the cluster has not been read yet'

export class ClusterIdentity {
  readonly #deps: IdentityDependencies
  /** Identity of the cluster that this process saw first. */
  #known: string | undefined
  /** As read from the API server, for events. */
  #namespace: Namespace | undefined
  #isStored = false
  /** Whether it was compared with the stored identity at least once. */
  #isCompared = false
  /** Why nothing may be removed, as of the last check. */
  #refusal: string | undefined
  /** The permission that the current check needs, as in RBAC. */
  #right = ''
  #lookedAt = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(deps: IdentityDependencies) {
    this.#deps = deps
    this.#refusal = deps.settings.isAccepted ? undefined : notReadYet
  }

  /** Checks the API server from time to time until `signal` aborts. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look()
      await this.#deps.clock.sleep(periodMs, signal).catch(ended)
    }
  }

  /**
   * Whether an instance, NodeClaim, Node or pod may be removed; asks the API server unless the last check is recent.
   */
  async mayRemove(): Promise<boolean> {
    const isFresh = this.#deps.clock.monotonic() - this.#lookedAt < freshMs
    if (this.#looking !== undefined || !isFresh) await this.#look()
    return this.refusal === undefined
  }

  /** Why nothing may be removed, as of the last check; logged once a minute at most. */
  get refusal(): string | undefined {
    if (this.#refusal !== undefined && this.#refusal !== notReadYet) this.#tell(this.#refusal)
    return this.#refusal
  }

  /**
   * The same for garbage collection; also refuses if this server knows nothing of what would be deleted.
   * @param isKnown whether the server has any object that was created for such instances.
   */
  refusalOfSweep(wanted: number, present: number, isKnown: () => boolean): string | undefined {
    const { settings } = this.#deps
    if (this.refusal !== undefined || settings.isAccepted || wanted === 0 || wanted < present)
      return this.refusal
    if (isKnown()) return undefined
    const why = `the cluster (${this.#known ?? 'of unknown identity'}) shows no NodeClaim and no Node of the ${present} instances that carry its name; ${remedy}`
    this.#tell(why)
    return why
  }

  #look(): Promise<void> {
    if (this.#looking === undefined) {
      this.#lookedAt = this.#deps.clock.monotonic()
      this.#looking = this.#compare()
        .catch((error: unknown) => {
          this.#fail(error)
        })
        .finally(() => {
          this.#looking = undefined
        })
    }
    return this.#looking
  }

  /** A successful check holds until the next one; without one, nothing is removed. */
  #fail(error: unknown): void {
    const { logger, settings } = this.#deps
    logger.debug('the identity of the cluster could not be read', { error })
    if (this.#isCompared || settings.isAccepted) return
    const what = error instanceof Error ? error.message : String(error)
    const way = isKubeError(error, 'forbidden')
      ? `grant the right to ${this.#right}, or start with --accept-cluster-identity`
      : 'it is read again within a minute'
    this.#refusal = `the identity of the cluster cannot be read (${what}); nothing is removed; ${way}`
    this.#tell(this.#refusal)
  }

  async #compare(): Promise<void> {
    const { settings } = this.#deps
    const uid = await this.#readIdentity()
    this.#known ??= uid
    if (uid === undefined || uid !== this.#known)
      this.#refusal = `the API server is that of another cluster (${uid ?? 'without a namespace kube-system'} instead of ${this.#known ?? 'one that is known'}); ${remedy}`
    else if (settings.lease === undefined || this.#isStored) this.#refusal = undefined
    else await this.#compareLease(uid, settings.lease)
    this.#isCompared = true
  }

  /** Read from the same object for as long as this process runs. */
  async #readIdentity(): Promise<string | undefined> {
    const { client } = this.#deps
    if (this.#known?.startsWith(rootCaPrefix) === true) return await this.#readRootCa()
    // The cache has the permission to list them, which is enough here.
    this.#right = 'list namespaces'
    const fieldSelector = `metadata.name=${identityNamespace.name}`
    try {
      const [namespace] = await client.list(kinds.namespace, { fieldSelector })
      this.#namespace = namespace
      return namespace?.metadata.uid
    } catch (error) {
      if (!isKubeError(error, 'forbidden') || this.#known !== undefined) throw error
      const identity = await this.#readRootCa().catch((second: unknown) => {
        if (!isKubeError(second, 'forbidden')) throw second
      })
      if (identity === undefined) throw error
      return identity
    }
  }

  async #readRootCa(): Promise<string | undefined> {
    const uid = (await this.#deps.client.get(kinds.configMap, rootCa))?.metadata.uid
    return uid === undefined ? undefined : `${rootCaPrefix}${uid}`
  }

  /**
   * An identity that an earlier process stored also counts: objects may have been copied from another cluster. One
   * that was read from the other object, with other rights, cannot be compared and is replaced.
   */
  async #compareLease(uid: string, key: ObjectKey): Promise<void> {
    const { client, settings } = this.#deps
    const { writes = 'patch' } = settings
    this.#right = `get Lease ${key.namespace}/${key.name}`
    const lease = await client.get(kinds.lease, key)
    const stored = lease?.metadata.annotations?.[identityAnnotation]
    this.#refusal =
      stored === undefined || stored === uid || !isComparable(stored, uid) || settings.isAccepted
        ? undefined
        : `the lease is that of cluster ${stored}, and this is cluster ${uid}; ${remedy}`
    this.#isCompared = true
    if (lease === undefined || this.#refusal !== undefined) return
    if (stored !== uid) {
      const annotations = { [identityAnnotation]: uid }
      if (writes === 'patch') await client.patch(kinds.lease, key, { metadata: { annotations } })
      else await client.update(kinds.lease, annotated(lease, annotations))
    }
    this.#isStored = true
  }

  #tell(message: string): void {
    const { clock, events, logger } = this.#deps
    const now = clock.monotonic()
    if (now - this.#toldAt < logPauseMs) return
    this.#toldAt = now
    logger.warn('removals are stopped', { why: message })
    const object = this.#namespace ?? unreadNamespace
    events.record({ object, type: 'Warning', reason: 'ClusterNotRecognized', message, dedupe: [message] })
  }
}

function annotated(lease: Lease, annotations: Readonly<Record<string, string>>): Lease {
  const { metadata } = lease
  return { ...lease, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } }
}

function isComparable(one: string, other: string): boolean {
  return one.startsWith(rootCaPrefix) === other.startsWith(rootCaPrefix)
}

/** A sleep was cut short. */
function ended(): void {}
