/** Whether the API server is that of the cluster whose instances this is about (reports-2.md 2). */
import { kinds, type Lease, type Namespace } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import { type EventRecorder, isKubeError, type KubeClient, type ObjectKey } from '../contract.ts'

/** Annotation of the lease: UID of namespace `kube-system` of the cluster that launched. */
export const identityAnnotation = 'tenon.sh/cluster-identity'

/** The namespace that every cluster has, and none has twice. */
export const identityNamespace: ObjectKey = { name: 'kube-system' }

const unreadNamespace: Namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: identityNamespace }

/** How the cluster is known again. */
export interface IdentitySettings {
  /** Where the identity outlives the process; nowhere without leader election. */
  readonly lease?: ObjectKey
  /** How the lease is written: `update` needs no right to patch. Default `patch`. */
  readonly writes?: 'patch' | 'update'
  /** Whoever started this process has looked: the cluster is the right one. */
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
/** Removals in a row ask once in so long. */
const freshMs = 10_000
const toldPauseMs = 60_000
const remedy =
  'nothing is removed; check the kubeconfig, and start once with --accept-cluster-identity if this is the right cluster'

/** Before the first look has ended; nobody needs to do anything about it yet. */
const notReadYet = 'the identity of the cluster has not been read yet'

export class ClusterIdentity {
  readonly #deps: IdentityDependencies
  /** Of the cluster that this process first saw. */
  #known: string | undefined
  /** As the API server has it, for events. */
  #namespace: Namespace | undefined
  #isStored = false
  /** Whether it was compared with what is stored, at least once. */
  #isCompared = false
  /** Why nothing may be removed, as of the last look at the API server. */
  #refusal: string | undefined
  /** What a look is asking for, as whoever grants rights calls it. */
  #right = ''
  #lookedAt = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(deps: IdentityDependencies) {
    this.#deps = deps
    this.#refusal = deps.settings.isAccepted ? undefined : notReadYet
  }

  /** Looks at the API server now and then until `signal` aborts. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look()
      await this.#deps.clock.sleep(periodMs, signal).catch(ended)
    }
  }

  /** Whether an instance, a NodeClaim, a Node or a pod may be removed; asks the API server unless it just did. */
  async mayRemove(): Promise<boolean> {
    const isFresh = this.#deps.clock.monotonic() - this.#lookedAt < freshMs
    if (this.#looking !== undefined || !isFresh) await this.#look()
    return this.refusal === undefined
  }

  /** Why nothing may be removed, as far as is known without asking; told once a minute at most. */
  get refusal(): string | undefined {
    if (this.#refusal !== undefined && this.#refusal !== notReadYet) this.#tell(this.#refusal)
    return this.#refusal
  }

  /**
   * The same for a sweep: also when nothing of what it would take is known to this server.
   * @param isKnown whether the server shows anything that was made for such instances.
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

  /** What was read once holds until the next look; of a cluster that was never read nothing is removed. */
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
    const { client, settings } = this.#deps
    // The right to list them is there for the cache, and covers this.
    this.#right = 'list namespaces'
    const fieldSelector = `metadata.name=${identityNamespace.name}`
    const [namespace] = await client.list(kinds.namespace, { fieldSelector })
    const uid = namespace?.metadata.uid
    this.#known ??= uid
    this.#namespace = namespace
    if (uid === undefined || uid !== this.#known)
      this.#refusal = `the API server is that of another cluster (${uid ?? 'without a namespace kube-system'} instead of ${this.#known ?? 'one that is known'}); ${remedy}`
    else if (settings.lease === undefined || this.#isStored) this.#refusal = undefined
    else await this.#compareLease(uid, settings.lease)
    this.#isCompared = true
  }

  /** What an earlier process stored counts: objects may have been copied from another cluster. */
  async #compareLease(uid: string, key: ObjectKey): Promise<void> {
    const { client, settings } = this.#deps
    const { writes = 'patch' } = settings
    this.#right = `get Lease ${key.namespace}/${key.name}`
    const lease = await client.get(kinds.lease, key)
    const stored = lease?.metadata.annotations?.[identityAnnotation]
    this.#refusal =
      stored === undefined || stored === uid || settings.isAccepted
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
    if (now - this.#toldAt < toldPauseMs) return
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

/** A sleep that was cut short. */
function ended(): void {}
