/** The current ProvisioningRequests, and writes to them (gangs.md 2.1). */
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
  /** By UID: the last written state, as the caches may lag. */
  readonly #written = new Map<string, ProvisioningRequest>()
  /** UIDs of deleted requests, until the caches show the deletion. */
  readonly #deleted = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Oldest first, without those being deleted; empty until they are read. */
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
   * Writes conditions with the current time.
   * @returns the written request; undefined if it has changed or is gone, or the write failed.
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
    // If versions cannot be ordered, the cached state is used once it differs.
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
