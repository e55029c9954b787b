/**
 * Caches members of groups, so that a loop need not request them all from the cloud (cluster-autoscaler.md 2.4).
 */
import type { GroupInstance, NodeGroups } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'

interface Entry {
  members?: readonly GroupInstance[]
  readMs: number
  /** Incremented by each removal; a read that began before one is outdated. */
  version: number
  versionRead: number
  reading?: Promise<void>
  isStaleTold: boolean
}

interface Dependencies {
  readonly groups: Pick<NodeGroups, 'instances'>
  readonly clock: Clock
  readonly logger: Logger
}

const refreshMs = 2 * 60_000
const staleMs = 5 * 60_000

export class GroupMembers {
  readonly #dependencies: Dependencies
  readonly #entries = new Map<string, Entry>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Members by group id. Only waits for groups that are new, had members removed, or are `urgent`; others are read in
   * the background. The last result is kept while a group cannot be read; a group that was never read is absent.
   * @param urgent groups with upcoming nodes.
   */
  async read(
    groupIds: Iterable<string>,
    urgent: (groupId: string) => boolean,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly GroupInstance[]>> {
    const ids = [...groupIds]
    this.#forgetOthers(new Set(ids))
    const awaited: Promise<void>[] = []
    for (const id of ids) {
      const entry = this.#entry(id)
      const isAwaited = entry.members === undefined || entry.version !== entry.versionRead || urgent(id)
      const isDue = this.#dependencies.clock.now() - entry.readMs >= refreshMs
      if (isAwaited || isDue) entry.reading ??= this.#readGroup(id, entry, signal)
      if (isAwaited && entry.reading !== undefined) awaited.push(entry.reading)
    }
    await Promise.all(awaited)
    signal.throwIfAborted()
    const known = ids.flatMap((id) => {
      const members = this.#entry(id).members
      return members === undefined ? [] : [[id, members] as const]
    })
    return new Map(known)
  }

  /** Call it when members were removed: the next loop reads them again. */
  invalidate(groupId: string): void {
    const entry = this.#entries.get(groupId)
    if (entry !== undefined) entry.version++
  }

  async #readGroup(id: string, entry: Entry, signal: AbortSignal): Promise<void> {
    const { groups, clock, logger } = this.#dependencies
    const { version } = entry
    try {
      entry.members = await groups.instances(id, signal)
      entry.readMs = clock.now()
      entry.versionRead = version
      entry.isStaleTold = false
    } catch (error) {
      if (!signal.aborted) this.#tellUnread(id, entry, error, logger)
    } finally {
      delete entry.reading
    }
  }

  #tellUnread(id: string, entry: Entry, error: unknown, logger: Logger): void {
    const fields = { nodeGroup: id, error }
    if (entry.members === undefined || this.#dependencies.clock.now() - entry.readMs < staleMs) {
      logger.info('could not read the members of a node group', fields)
    } else if (!entry.isStaleTold) {
      entry.isStaleTold = true
      logger.warn('the members of a node group have been unreadable for five minutes', fields)
    }
  }

  #forgetOthers(ids: ReadonlySet<string>): void {
    for (const id of this.#entries.keys()) if (!ids.has(id)) this.#entries.delete(id)
  }

  #entry(id: string): Entry {
    const known = this.#entries.get(id)
    if (known !== undefined) return known
    const entry: Entry = { readMs: 0, version: 0, versionRead: 0, isStaleTold: false }
    this.#entries.set(id, entry)
    return entry
  }
}
