/** Groups of pods that run all together or not at all (gangs.md 7.1). */
import type { KubeObject, MemberGroup, Pod, PodGroup } from '@tenon/api'
import type { Cache, Change } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import { type Caches, indexes } from '../caches.ts'
import { isUnreadable, unreadableText } from '../readable.ts'
import { type GroupRef, groupOf, type GroupSource, groupSources, refOf } from './group-of-pod.ts'
import { isActive } from './pods.ts'
import type { RequestPods } from './request-pods.ts'

type KindState = 'unknown' | 'absent' | 'served'

export interface KnownGroup {
  readonly ref: GroupRef
  readonly object: KubeObject
  readonly uid: string
  /** 0 for a group whose pods run one by one. */
  readonly minCount: number
  readonly topologyKey: string | undefined
  readonly priority: number | undefined
  /** Whether disruption moves all members together or none. */
  readonly movesWhole: boolean
}

export interface GroupRound {
  /** How often its claims were released since it last ran. */
  readonly releases: number
  /** Nothing is launched for it before; Unix milliseconds. */
  readonly notBeforeMs: number
}

const none: ReadonlySet<string> = new Set()

export class PodGroups {
  readonly #pods: Cache<Pod> | undefined
  readonly requests: RequestPods
  /** Whether pods may belong to groups at all. */
  readonly isOn: boolean
  /** Of the Kubernetes kind, a cache for each version that was served at some time; the last found comes first. */
  readonly #podGroups: Cache<PodGroup>[] = []
  readonly #memberGroups = new Map<GroupSource, Cache<MemberGroup>>()
  readonly #absent = new Set<GroupSource>()
  /** Active pods by id of the group and UID. */
  readonly #members = new Map<string, Map<string, Pod>>()
  #version = 0
  /** By UID of the group's object. */
  readonly #rounds = new Map<string, GroupRound>()
  /** Ids of groups that the last decision could not place. */
  readonly #refused = new Set<string>()
  /** By id of the group. */
  readonly #firstDecided = new Map<string, number>()
  /** Ids of groups whose members, object or decision changed. */
  readonly changes: Listeners<string> = new Listeners()

  /** @param caches without `groupKinds` the feature is off. */
  constructor({ pods, groupKinds }: Pick<Caches, 'groupKinds' | 'pods'>, requests: RequestPods) {
    this.requests = requests
    this.isOn = groupKinds !== undefined
    if (!this.isOn) return
    requests.changes.add((key) => {
      const [namespace = '', name = ''] = key.split('/')
      this.changes.notify(refOf('request', namespace, name).id)
    })
    this.#pods = pods
    pods.onChange((change) => {
      this.#see(change)
    })
  }

  /** Increases with every change of a group or member. */
  get version(): number {
    return this.#version
  }

  /** Caches of all sources except requests. */
  get caches(): readonly Cache<KubeObject>[] {
    return [...this.#podGroups, ...this.#memberGroups.values()]
  }

  followPodGroups(cache: Cache<PodGroup>): void {
    this.#podGroups.unshift(cache)
    this.#follow('podgroup', cache)
  }

  followMemberGroups(source: Exclude<GroupSource, 'podgroup' | 'request'>, cache: Cache<MemberGroup>): void {
    this.#memberGroups.set(source, cache)
    this.#follow(source, cache)
  }

  /** The kind is not served or may not be read: its pods are ordinary ones. */
  setAbsent(source: GroupSource): void {
    this.#absent.add(source)
  }

  #follow(source: GroupSource, cache: Cache<PodGroup> | Cache<MemberGroup>): void {
    this.#absent.delete(source)
    this.#version++
    cache.onChange(({ object: { metadata } }: Change<KubeObject>) => {
      this.#version++
      this.changes.notify(refOf(source, metadata.namespace ?? '', metadata.name).id)
    })
  }

  /** Undefined if the kind of the group is not served or may not be read. */
  of(pod: Pod): GroupRef | undefined {
    if (!this.isOn) return undefined
    const ref = groupOf(pod)
    return ref !== undefined && this.#stateOf(ref.source) !== 'absent' ? ref : undefined
  }

  #stateOf(source: GroupSource): KindState {
    if (source === 'request')
      return this.requests.isAbsent ? 'absent' : this.requests.isKnown ? 'served' : 'unknown'
    const isFollowed = source === 'podgroup' ? this.#podGroups.length > 0 : this.#memberGroups.has(source)
    return isFollowed ? 'served' : this.#absent.has(source) ? 'absent' : 'unknown'
  }

  /** Undefined while the object does not exist or is invalid. */
  get(ref: GroupRef): KnownGroup | undefined {
    const { source, namespace, name } = ref
    if (source === 'request') return this.#ofRequest(ref)
    if (source === 'podgroup') {
      const object = this.#podGroup({ namespace, name })
      return object === undefined || isUnreadable(object) ? undefined : readGroup(ref, object)
    }
    const object = this.#memberGroups.get(source)?.get({ namespace, name })
    const minMember: unknown = object?.spec?.minMember
    if (object === undefined || !isCount(minMember)) return undefined
    return {
      ...known(ref, object, minMember),
      topologyKey: undefined,
      priority: undefined,
      movesWhole: false,
    }
  }

  #podGroup(key: { readonly namespace: string; readonly name: string }): PodGroup | undefined {
    for (const cache of this.#podGroups) {
      const object = cache.get(key)
      if (object !== undefined) return object
    }
    return undefined
  }

  /** What is wrong with the object, if it exists. */
  problemOf({ source, namespace, name }: GroupRef): string | undefined {
    const key = { namespace, name }
    const object =
      source === 'request'
        ? this.requests.get(`${namespace}/${name}`)
        : source === 'podgroup'
          ? this.#podGroup(key)
          : this.#memberGroups.get(source)?.get(key)
    return object && unreadableText(object)
  }

  #ofRequest(ref: GroupRef): KnownGroup | undefined {
    const found = this.requests.minCountOf(ref)
    if (found === undefined) return undefined
    return {
      ...known(ref, found.request, found.minCount),
      topologyKey: this.requests.served(ref.id)?.topologyKey,
      priority: undefined,
      movesWhole: false,
    }
  }

  /** Whether all groups of its kind are known, so that a missing one does not exist. */
  isKnown(ref: GroupRef): boolean {
    const { source } = ref
    if (this.problemOf(ref) !== undefined) return false
    if (source === 'request') return this.requests.isKnown
    if (source !== 'podgroup') return this.#memberGroups.get(source)?.isSynced === true
    return this.#podGroups.length > 0 && this.#podGroups.every(({ isSynced }) => isSynced)
  }

  /** Whether its kind is not served or may not be read. */
  isAbsent({ source }: GroupRef): boolean {
    return this.#stateOf(source) === 'absent'
  }

  /** Ids of the groups with members on a node. */
  idsOn(nodeName: string): ReadonlySet<string> {
    if (this.#members.size === 0) return none
    const pods = this.#pods?.byIndex(indexes.byNode, nodeName) ?? []
    return new Set(pods.flatMap((pod) => this.of(pod)?.id ?? []))
  }

  /** Ids of the groups that have members. */
  ids(): Iterable<string> {
    return [...this.#members.keys(), ...this.requests.all().map(({ ref }) => ref.id)]
  }

  /** Parses the id of a group. */
  ref(id: string): GroupRef | undefined {
    const [kind = '', namespace = '', ...rest] = id.split('/')
    // Volcano allows any name, even with slashes.
    const name = rest.join('/')
    return groupSources
      .map((source) => refOf(source, namespace, name))
      .find((ref) => ref.id === `${kind}/${namespace}/${name}`)
  }

  /** Active members. */
  members(id: string): readonly Pod[] {
    return this.requests.served(id)?.pods ?? [...(this.#members.get(id)?.values() ?? [])]
  }

  /** By UID of the group's object. */
  get rounds(): ReadonlyMap<string, GroupRound> {
    return this.#rounds
  }

  roundOf(uid: string): GroupRound | undefined {
    return this.#rounds.get(uid)
  }

  setRound(uid: string, round: GroupRound): void {
    this.#rounds.set(uid, round)
  }

  endRound(uid: string): void {
    this.#rounds.delete(uid)
  }

  /** First decision since the group last ran; Unix milliseconds. */
  firstDecidedMs(id: string): number | undefined {
    return this.#firstDecided.get(id)
  }

  /** The group runs. */
  runs({ ref, uid }: KnownGroup): void {
    this.#rounds.delete(uid)
    this.#firstDecided.delete(ref.id)
  }

  decided(
    outcomes: readonly { readonly id: string; readonly kind: 'placed' | 'refused' }[],
    nowMs: number,
  ): void {
    for (const { id, kind } of outcomes) {
      if (!this.#firstDecided.has(id)) this.#firstDecided.set(id, nowMs)
      if (kind === 'refused') this.#refused.add(id)
      else this.#refused.delete(id)
      this.changes.notify(id)
    }
  }

  /** Whether the last decision could not place the group. */
  isRefused(id: string): boolean {
    return this.#refused.has(id)
  }

  #see(change: Change<Pod>): void {
    const { object } = change
    const uid = object.metadata.uid ?? ''
    if (change.kind === 'updated') this.#forget(change.old, uid)
    const ref = groupOf(object)
    if (ref === undefined) return
    this.#version++
    if (change.kind === 'deleted' || !isActive(object)) this.#forget(object, uid)
    else {
      const members = this.#members.get(ref.id) ?? new Map<string, Pod>()
      this.#members.set(ref.id, members.set(uid, object))
    }
    this.changes.notify(ref.id)
  }

  #forget(pod: Pod, uid: string): void {
    const id = groupOf(pod)?.id
    if (id === undefined) return
    this.#version++
    const members = this.#members.get(id)
    members?.delete(uid)
    if (members?.size !== 0) return
    this.#members.delete(id)
    this.#refused.delete(id)
    this.#firstDecided.delete(id)
  }
}

function known(ref: GroupRef, object: KubeObject, minCount: number) {
  return { ref, object, uid: object.metadata.uid ?? '', minCount }
}

function readGroup(ref: GroupRef, object: PodGroup): KnownGroup | undefined {
  const { schedulingPolicy, schedulingConstraints, disruptionMode, priority } = object.spec ?? {}
  const minCount: unknown = schedulingPolicy?.gang == null ? 0 : schedulingPolicy.gang.minCount
  if (!isCount(minCount)) return undefined
  const key = schedulingConstraints?.topology?.[0]?.key
  return {
    ...known(ref, object, minCount),
    topologyKey: typeof key === 'string' && key !== '' ? key : undefined,
    priority: typeof priority === 'number' ? priority : undefined,
    movesWhole:
      disruptionMode === 'PodGroup' ||
      (typeof disruptionMode === 'object' && disruptionMode?.all !== undefined),
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
