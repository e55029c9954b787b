/** Members that the cloud failed to create (cluster-autoscaler.md 2.4). */
import type { GroupInstance } from '@tenon/provider'
import type { ScaleUpFailure } from './backoff.ts'

/** Members that failed with one code since the last update. */
export interface FailedCreations extends ScaleUpFailure {
  readonly groupId: string
  readonly count: number
}

export class CreateErrors {
  #byGroup = new Map<string, readonly GroupInstance[]>()

  /** @returns new failures, by group and code. */
  update(instances: ReadonlyMap<string, readonly GroupInstance[]>): readonly FailedCreations[] {
    const failures: FailedCreations[] = []
    const next = new Map<string, readonly GroupInstance[]>()
    for (const [groupId, members] of instances) {
      const failed = members.filter(({ state, error }) => state === 'creating' && error !== undefined)
      if (failed.length === 0) continue
      next.set(groupId, failed)
      const known = new Set(this.of(groupId).map(({ providerId }) => providerId))
      failures.push(
        ...byCode(
          groupId,
          failed.filter(({ providerId }) => !known.has(providerId)),
        ),
      )
    }
    this.#byGroup = next
    return failures
  }

  of(groupId: string): readonly GroupInstance[] {
    return this.#byGroup.get(groupId) ?? []
  }

  groupIds(): readonly string[] {
    return [...this.#byGroup.keys()]
  }
}

function byCode(groupId: string, failed: readonly GroupInstance[]): readonly FailedCreations[] {
  const counts = new Map<string, FailedCreations>()
  for (const { error } of failed) {
    if (error === undefined) continue
    const before = counts.get(error.code)
    counts.set(error.code, {
      groupId,
      code: error.code,
      message: before?.message ?? error.message,
      count: (before?.count ?? 0) + 1,
    })
  }
  return [...counts.values()].toSorted((a, b) => (a.code < b.code ? -1 : 1))
}
