/** Counts the pods of PodGroups for the scheduler (gangs.md 5.3). */
import type { Pod, PodGroup } from '@tenon/api'
import type { ClusterIndex, PodFacts } from '@tenon/filters'

/** A group and its pods. */
export interface KnownGroup {
  /** `namespace/name`. */
  readonly key: string
  object: PodGroup | undefined
  /** UIDs of this scheduler's unfinished pods, including gated, terminating and bound ones. */
  readonly members: Set<string>
  /** Pods that wait outside the queue until there are enough, by UID. */
  readonly held: Map<string, PodFacts>
}

/** Undefined for a pod without a group. */
function groupKeyOf({ metadata, spec }: Pod): string | undefined {
  const name = spec.schedulingGroup?.podGroupName ?? ''
  return name === '' ? undefined : `${metadata.namespace ?? ''}/${name}`
}

export class GroupBook {
  readonly #groups = new Map<string, KnownGroup>()
  readonly #ofPod = new Map<string, KnownGroup>()

  /** The group of a pod, which may not exist. */
  of(pod: Pod): KnownGroup | undefined {
    const key = groupKeyOf(pod)
    return key === undefined ? undefined : this.#group(key)
  }

  setObject(key: string, object: PodGroup | undefined): KnownGroup {
    const group = this.#group(key)
    group.object = object
    this.#forgetIfEmpty(group)
    return group
  }

  /**
   * @param pod an unfinished pod of this scheduler; otherwise undefined.
   * @returns the group that changed.
   */
  setPod(uid: string, pod: Pod | undefined): KnownGroup | undefined {
    const key = pod && groupKeyOf(pod)
    const known = this.#ofPod.get(uid)
    if (key !== undefined) {
      if (known !== undefined) return undefined
      const group = this.#group(key)
      this.#ofPod.set(uid, group)
      group.members.add(uid)
      return group
    }
    if (known === undefined) return undefined
    this.#ofPod.delete(uid)
    known.members.delete(uid)
    known.held.delete(uid)
    this.#forgetIfEmpty(known)
    return known
  }

  #group(key: string): KnownGroup {
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group: KnownGroup = { key, object: undefined, members: new Set(), held: new Map() }
    this.#groups.set(key, group)
    return group
  }

  #forgetIfEmpty({ key, object, members }: KnownGroup): void {
    if (object === undefined && members.size === 0) this.#groups.delete(key)
  }
}

/**
 * How many pods must run together; undefined while the group does not exist. Pods of a basic group run independently.
 */
export function minCountOf({ object }: KnownGroup): number | undefined {
  const { gang } = object?.spec?.schedulingPolicy ?? {}
  if (object === undefined) return undefined
  return gang == null ? 1 : (gang.minCount ?? 1)
}

/** Whether pods of the group enter the queue: it exists, and there are enough pods. */
export function isAdmitted(group: KnownGroup): boolean {
  const minCount = minCountOf(group)
  return minCount !== undefined && group.members.size >= minCount
}

/** UIDs of the group's bound pods. */
export function boundMembers({ members }: KnownGroup, index: ClusterIndex): readonly string[] {
  return [...members].filter((uid) => index.assignedTo(uid) !== undefined)
}
