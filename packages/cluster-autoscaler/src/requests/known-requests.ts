/** ProvisioningRequests as they are now, and what is written to them (gangs.md 2.1). */
import {
  compareResourceVersions,
  type NewCondition,
  type ProvisioningRequest,
  withRequestCondition,
} from '@tenon/api'
import { type Clock, type Logger, messageOf, rfc3339 } from '@tenon/runtime'
import type { ClusterWriter, ClusterCache } from '../model.ts'

interface Dependencies {
  readonly cache: Pick<ClusterCache, 'requests'>
  readonly writer: Pick<ClusterWriter, 'writeRequestConditions' | 'deleteRequest'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

export class KnownRequests {
  readonly #deps: Dependencies
  /** By UID, as it was when it was written last: the caches may not tell of that yet. */
  readonly #written = new Map<string, ProvisioningRequest>()
  /** UIDs of those that were deleted, until the caches tell of it. */
  readonly #deleted = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** The oldest first; none while they are not read. Without those that are being deleted. */
  list(): readonly ProvisioningRequest[] {
    const cached = this.#deps.cache.requests?.list()
    if (cached === undefined) return []
    const uids = new Set(cached.map(uidOf))
    for (const uid of this.#written.keys()) if (!uids.has(uid)) this.#written.delete(uid)
    for (const uid of this.#deleted) if (!uids.has(uid)) this.#deleted.delete(uid)
    return cached
      .filter((request) => !this.#deleted.has(uidOf(request)))
      .map((request) => this.#newest(request))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted(byAge)
  }

  /**
   * Writes conditions with the time of now, all at once.
   * @returns the request with them; undefined when it has changed or gone meanwhile, or could not be written.
   */
  async write(
    request: ProvisioningRequest,
    conditions: readonly NewCondition[],
    signal: AbortSignal,
  ): Promise<ProvisioningRequest | undefined> {
    const { clock, writer } = this.#deps
    const at = rfc3339(clock.now())
    const changed = conditions.reduce((before, each) => changedBy(before, each, at), request)
    try {
      const written = await writer.writeRequestConditions(changed, signal)
      if (written !== undefined) this.#written.set(uidOf(request), written)
      return written
    } catch (error) {
      signal.throwIfAborted()
      this.#tell(request, 'a ProvisioningRequest could not be written; it is tried again', error)
      return undefined
    }
  }

  async remove(request: ProvisioningRequest, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.writer.deleteRequest(request, signal)
      this.#deleted.add(uidOf(request))
    } catch (error) {
      signal.throwIfAborted()
      this.#tell(request, 'a ProvisioningRequest could not be deleted; it is tried again', error)
    }
  }

  #newest(request: ProvisioningRequest): ProvisioningRequest {
    const written = this.#written.get(uidOf(request))
    if (written === undefined) return request
    const { resourceVersion: then = '' } = written.metadata
    const { resourceVersion: now = '' } = request.metadata
    // Where only equality can be told, what the caches have is taken once it is something else.
    return (compareResourceVersions(now, then) ?? 1) > 0 ? request : written
  }

  #tell(request: ProvisioningRequest, what: string, error: unknown): void {
    this.#deps.logger.warn(what, { request: keyOfRequest(request), error: messageOf(error) })
  }
}

function changedBy(request: ProvisioningRequest, condition: NewCondition, at: string): ProvisioningRequest {
  const conditions = withRequestCondition(request, condition, at)
  return { ...request, status: { ...request.status, conditions } }
}

/** `namespace/name`. */
export function keyOfRequest({ metadata: { namespace = '', name } }: ProvisioningRequest): string {
  return `${namespace}/${name}`
}

export function uidOf({ metadata: { uid = '' } }: ProvisioningRequest): string {
  return uid
}

function byAge(a: ProvisioningRequest, b: ProvisioningRequest): number {
  const textOf = (each: ProvisioningRequest) =>
    `${each.metadata.creationTimestamp ?? ''} ${keyOfRequest(each)}`
  return textOf(a) < textOf(b) ? -1 : 1
}
