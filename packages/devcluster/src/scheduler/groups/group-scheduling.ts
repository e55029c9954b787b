/** Schedules the pods of a PodGroup together, like kube-scheduler 1.36 (gangs.md 5.3, 5.4). */
import { ownValue, type Pod, type PodGroup } from '@tenon/api'
import type { ClusterIndex, NodeEntry, PodFacts } from '@tenon/filters'
import type { Clock } from '@tenon/runtime'
import type { ReadApi } from '../cluster/held-events.ts'
import { podGroupKind, servesPodGroups } from '../../pod-group-kind.ts'
import { refusalText } from '../refusals.ts'
import type { QueuedPod, SchedulingQueue } from '../queue/scheduling-queue.ts'
import { boundMembers, GroupBook, isAdmitted, type KnownGroup, minCountOf } from './group-book.ts'
import type { GroupTrials, Trial } from './group-trial.ts'
import type { GroupWriter } from './group-writer.ts'

/** Why a pod of a group was not placed. */
export interface MemberRefusal {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
  /** The node on which pods are preempted for it. */
  readonly nodeName?: string | undefined
}

/** What the scheduler does for groups. */
interface SchedulerActions {
  /** Holds back events until the release. */
  hold(): void
  release(): void
  /** A group is ready to be tried. */
  wakeUp(): void
  bind(queued: QueuedPod, nodeName: string): void
  /** Preempts lower-priority pods, and returns why the pod fits on no node. */
  refuse(refused: Trial['refused'][number]): Omit<MemberRefusal, 'reason'>
  fail(facts: PodFacts, refusal: MemberRefusal & { readonly isRepeated: boolean }): void
}

interface Dependencies {
  readonly clock: Clock
  readonly index: ClusterIndex
  readonly queue: SchedulingQueue
  readonly trials: GroupTrials
  readonly writer: GroupWriter
  readonly actions: SchedulerActions
}

/** kube-scheduler retries a group without pause, after any change. Here it is retried at most this often. */
const leastPauseMs = 100
/** Pauses while only scheduling gates block the group. */
const gatedPauseMs = { first: 1000, longest: 10_000 } as const

const groupUnschedulable = 'pod group is unschedulable'
const waitingForOthers =
  `${groupUnschedulable}, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to ` +
  'wait and no plugin rejected pod'
const noPlacements = 'no feasible placements found'
const notForPlacements = 'preemption: not eligible due to placement-based pod group scheduling limitation'

/** Work in steps, between which other things may happen. */
type Steps = Generator<undefined, void, undefined>

/** A group that is retried. */
interface Retry {
  readonly group: KnownGroup
  /** The earliest time in Unix milliseconds. */
  atMs: number
  /** Whether an event that may help has occurred. */
  isDue: boolean
  /** Consecutive attempts that only gates blocked. */
  gatedTries: number
}

export class GroupScheduling {
  readonly #deps: Dependencies
  readonly #book = new GroupBook()
  readonly #retries = new Map<string, Retry>()
  /** By UID: the last message of a pod. */
  readonly #lastMessages = new Map<string, string>()
  #cancel: (() => void) | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Follows the groups.
   * @returns a function that ends this.
   */
  observe(api: ReadApi): () => void {
    if (!servesPodGroups(api)) return () => {}
    const look = ({ metadata: { namespace, name } }: PodGroup): void => {
      // Events lag; the latest version does not.
      const group = this.#book.setObject(`${namespace ?? ''}/${name}`, api.get(podGroupKind, namespace, name))
      this.#changed(group)
    }
    for (const group of api.list(podGroupKind)) look(group)
    const stop = api.subscribe(podGroupKind, { added: look, updated: look, deleted: look })
    return () => {
      stop()
      this.#cancel?.()
    }
  }

  /** @param pod an unfinished pod of this scheduler; otherwise undefined. */
  see(uid: string, pod: Pod | undefined): void {
    const group = this.#book.setPod(uid, pod)
    if (pod === undefined) this.#lastMessages.delete(uid)
    else if ((pod.spec.nodeName ?? '') !== '' || pod.metadata.deletionTimestamp !== undefined)
      this.#book.of(pod)?.held.delete(uid)
    if (group !== undefined) this.#changed(group)
  }

  /** Whether a pod may enter the queue now; otherwise it does when its group admits it. */
  admits(facts: PodFacts): boolean {
    const group = this.#book.of(facts.pod)
    if (group === undefined || isAdmitted(group)) return true
    group.held.set(facts.uid, facts)
    return false
  }

  /** Call it when a waiting pod of a group has changed. */
  update({ pod }: PodFacts): void {
    const group = this.#book.of(pod)
    if (group !== undefined) this.#wake(group)
  }

  /** Call it when the cluster has changed. */
  wake(): void {
    for (const retry of this.#retries.values()) retry.isDue = true
    this.#arm()
  }

  /** Whether a group is ready to be tried. */
  get isReady(): boolean {
    return this.#nextRetry() !== undefined
  }

  /** A pod of the next group to try; groups come after single pods. */
  next(): QueuedPod | undefined {
    const retry = this.#nextRetry()
    if (retry === undefined) return undefined
    this.#retries.delete(retry.group.key)
    this.#retries.set(retry.group.key, { ...retry, isDue: false })
    return this.#waiting(retry.group)[0]
  }

  /**
   * Tries the group of a pod, in steps of about one pod.
   * @returns undefined for a pod without a group.
   */
  attempt(queued: QueuedPod): Steps | undefined {
    const group = this.#book.of(queued.facts.pod)
    return group === undefined ? undefined : this.#attempt(group)
  }

  *#attempt(group: KnownGroup): Steps {
    const { queue } = this.#deps
    const members = this.#waiting(group)
    if (!isAdmitted(group) || group.object === undefined) {
      for (const { facts } of members) {
        queue.remove(facts.uid)
        group.held.set(facts.uid, facts)
      }
      return
    }
    for (const member of members) queue.take(member)
    const key = group.object.spec?.schedulingConstraints?.topology?.[0]?.key
    if (key === undefined) yield* this.#tryAnywhere(group, group.object, members)
    else yield* this.#tryDomains(group, group.object, members, key)
  }

  *#tryAnywhere(group: KnownGroup, object: PodGroup, members: readonly QueuedPod[]): Steps {
    const { actions, trials } = this.#deps
    const refusals = new Map<string, Omit<MemberRefusal, 'reason'>>()
    const trial = yield* this.#held(
      trials.run(members, undefined, (refused) => {
        refusals.set(refused.queued.facts.uid, actions.refuse(refused))
      }),
    )
    yield* this.#conclude(group, object, trial, {
      message: groupUnschedulable,
      refusalOf: ({ queued }) => refusals.get(queued.facts.uid) ?? { message: groupUnschedulable },
    })
  }

  /**
   * Holds back events during `work`, so that it sees one state. They are delivered afterwards, also after a failure.
   */
  *#held<T>(work: Generator<undefined, T, undefined>): Generator<undefined, T, undefined> {
    const { actions } = this.#deps
    actions.hold()
    try {
      return yield* work
    } finally {
      actions.release()
    }
  }

  /** All of the group's pods must be in one domain of a node label. */
  *#tryDomains(group: KnownGroup, object: PodGroup, members: readonly QueuedPod[], key: string): Steps {
    const { index, trials } = this.#deps
    const domains = domainsOf(index.nodes(), key)
    const fixed = this.#fixedDomain(group, key)
    if (typeof fixed === 'object') {
      const message = `cannot determine domain for already scheduled pods: ${fixed.problem}`
      yield* this.#refuseAll(group, object, members, { reason: 'SchedulerError', message })
      return
    }
    const tried = fixed === undefined ? [...domains.keys()].toSorted() : [fixed]
    if (tried.length === 0) {
      yield* this.#refuseAll(group, object, members, { reason: 'Unschedulable', message: noPlacements })
      return
    }
    const inEach = function* (): Generator<undefined, readonly Trial[], undefined> {
      const found: Trial[] = []
      for (const domain of tried) found.push(yield* trials.run(members, domains.get(domain) ?? []))
      return found
    }
    const found = yield* this.#held(inEach())
    const enough = found.filter((trial) => this.#isEnough(group, trial)).toSorted(byFit)
    const [best = found[0]] = enough
    if (best === undefined) return
    yield* this.#conclude(group, object, best, {
      message: `0/${tried.length} placements are available, first placement status: ${groupUnschedulable}`,
      refusalOf: ({ cycle, diagnosis }) => ({
        message: `${refusalText(cycle, diagnosis).message} ${notForPlacements}`,
      }),
    })
  }

  /** The domain of the group's bound pods; undefined if none is bound. */
  #fixedDomain(group: KnownGroup, key: string): string | { readonly problem: string } | undefined {
    const { index } = this.#deps
    const found = new Set<string>()
    for (const uid of boundMembers(group, index)) {
      const known = index.assignedTo(uid)
      if (known === undefined) continue
      const { entry, facts } = known
      if (entry.node === undefined)
        return { problem: `node "${entry.name}" of pod "${facts.name}" not found` }
      const domain = ownValue(entry.labels, key)
      if (domain === undefined) return { problem: `node "${entry.name}" has no label "${key}"` }
      found.add(domain)
    }
    if (found.size > 1) return { problem: `they are in ${found.size} domains of "${key}"` }
    return [...found][0]
  }

  #isEnough(group: KnownGroup, { placed }: Trial): boolean {
    const bound = boundMembers(group, this.#deps.index).length
    return placed.length > 0 && bound + placed.length >= (minCountOf(group) ?? Number.POSITIVE_INFINITY)
  }

  *#conclude(
    group: KnownGroup,
    object: PodGroup,
    trial: Trial,
    words: {
      readonly message: string
      readonly refusalOf: (refused: Trial['refused'][number]) => Omit<MemberRefusal, 'reason'>
    },
  ): Steps {
    const { actions, index, writer } = this.#deps
    const { placed, refused } = trial
    const wasEnough = boundMembers(group, index).length >= (minCountOf(group) ?? 0)
    const isEnough = this.#isEnough(group, trial)
    for (const { queued, entry } of placed) {
      yield
      if (!isStillTried(queued)) continue
      if (isEnough) actions.bind(queued, entry.name)
      else this.#refuse(queued, { reason: 'Unschedulable', message: waitingForOthers })
    }
    for (const each of refused) {
      yield
      if (isStillTried(each.queued))
        this.#refuse(each.queued, { reason: 'Unschedulable', ...words.refusalOf(each) })
    }
    if (isEnough) writer.scheduled(object)
    else if (!wasEnough) writer.refused(object, 'Unschedulable', words.message)
    if (isEnough && refused.length === 0) this.#retries.delete(group.key)
    else this.#retryLater(group, !isEnough && refused.length === 0)
  }

  *#refuseAll(
    group: KnownGroup,
    object: PodGroup,
    members: readonly QueuedPod[],
    refusal: MemberRefusal,
  ): Steps {
    for (const queued of members) {
      yield
      if (isStillTried(queued)) this.#refuse(queued, refusal)
    }
    this.#deps.writer.refused(object, refusal.reason, refusal.message)
    this.#retryLater(group, false)
  }

  #refuse(queued: QueuedPod, refusal: MemberRefusal): void {
    const { facts } = queued
    const said = `${refusal.reason} ${refusal.message}`
    const isRepeated = this.#lastMessages.get(facts.uid) === said
    this.#lastMessages.set(facts.uid, said)
    this.#deps.queue.leaveToGroup(queued)
    this.#deps.actions.fail(facts, { ...refusal, isRepeated })
  }

  #retryLater(group: KnownGroup, isGated: boolean): void {
    const tries = isGated ? (this.#retries.get(group.key)?.gatedTries ?? 0) : 0
    const pauseMs = isGated ? Math.min(gatedPauseMs.longest, gatedPauseMs.first * 2 ** tries) : leastPauseMs
    this.#retries.set(group.key, {
      group,
      atMs: this.#deps.clock.now() + pauseMs,
      isDue: isGated,
      gatedTries: isGated ? tries + 1 : 0,
    })
    this.#arm()
  }

  /** Pods of the group in the queue, in the order in which they are tried. */
  #waiting({ members }: KnownGroup): readonly QueuedPod[] {
    const { queue, trials } = this.#deps
    return trials.inOrder([...members].flatMap((uid) => queue.get(uid) ?? []))
  }

  /** Call it when its object or its pods have changed. */
  #changed(group: KnownGroup): void {
    if (group.held.size > 0 && isAdmitted(group)) {
      const held = [...group.held.values()]
      group.held.clear()
      for (const facts of held) this.#deps.queue.add(facts)
    }
    this.#wake(group)
  }

  #wake({ key, members }: KnownGroup): void {
    const retry = this.#retries.get(key)
    if (retry === undefined) return
    if (members.size === 0) this.#retries.delete(key)
    else retry.isDue = true
    this.#arm()
  }

  #nextRetry(): Retry | undefined {
    const { clock, queue } = this.#deps
    const now = clock.now()
    for (const [key, retry] of this.#retries) {
      if (!retry.isDue || retry.atMs > now) continue
      if ([...retry.group.members].some((uid) => queue.get(uid) !== undefined)) return retry
      this.#retries.delete(key)
    }
    return undefined
  }

  #arm(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const due = [...this.#retries.values()].flatMap(({ isDue, atMs }) => (isDue ? [atMs] : []))
    if (due.length === 0) return
    const delayMs = Math.max(0, Math.min(...due) - this.#deps.clock.now())
    this.#cancel = this.#deps.clock.after(delayMs, () => {
      this.#cancel = undefined
      this.#deps.actions.wakeUp()
    })
  }
}

/** Whether the pod still exists and is not bound since it was taken from the queue. */
function isStillTried({ place }: QueuedPod): boolean {
  return place === 'taken'
}

/** Nodes by the value of a label; those without it are in no domain. */
function domainsOf(nodes: readonly NodeEntry[], key: string): ReadonlyMap<string, readonly NodeEntry[]> {
  const domains = new Map<string, NodeEntry[]>()
  for (const entry of nodes) {
    const domain = ownValue(entry.labels, key)
    if (domain === undefined) continue
    const known = domains.get(domain)
    if (known === undefined) domains.set(domain, [entry])
    else known.push(entry)
  }
  return domains
}

/** Most pods first, then the fuller domain. */
function byFit(a: Trial, b: Trial): number {
  return b.placed.length - a.placed.length || b.fullness - a.fullness
}
