/** Opens the nodes of a group together, as the group cannot run before all of them are open (gangs.md 7.3). */
import {
  type Node,
  type NodeClaim,
  ownValue,
  type Pod,
  podRequests,
  sameTaint,
  tolerates,
  unregisteredTaint,
} from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { OpeningHold } from '../../nodeclaim/lifecycle/registration.ts'
import { canOpen } from '../../placement/standing-nominations.ts'
import type { Settings } from '../../settings.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { startupTaintKind } from '../../state/nodes/state-node.ts'
import { groupsOfClaim } from '../../state/pods/group-of-pod.ts'
import { claimsOfGroup, groupDeadlineMs, standingOf } from './standing.ts'

const pollMs = 1000
/** How long a group stays closed for pods outside groups to get nodes of their own, and how often that is checked. */
const outsideMs = { longest: 5000, poll: 100, pollMost: 500 } as const

/** Since when a group could open, and whether pods outside groups would take its room. */
interface Readiness {
  readonly sinceMs: number
  readonly checkedMs: number
  readonly isThreatened: boolean
}

export class GroupHold implements OpeningHold {
  readonly #caches: Pick<Caches, 'nodeClaims'>
  readonly #state: ClusterState
  readonly #clock: Pick<Clock, 'now'>
  readonly #settings: Pick<Settings, 'registrationTimeoutMs'>
  /** Ids of groups whose claims may open. */
  readonly #opening = new Set<string>()
  /** By id of the group. */
  readonly #ready = new Map<string, Readiness>()
  readonly due: OpeningHold['due'] = new Listeners()

  constructor(
    caches: Pick<Caches, 'nodeClaims'>,
    state: ClusterState,
    clock: Pick<Clock, 'now'>,
    settings: Pick<Settings, 'registrationTimeoutMs'>,
  ) {
    this.#caches = caches
    this.#state = state
    this.#clock = clock
    this.#settings = settings
  }

  waitMs(claim: NodeClaim): number {
    // A claim of a process that had the feature gate on is ordinary without it.
    const groups = this.#state.podGroups.isOn ? groupsOfClaim(claim) : []
    if (groups.length === 0) return 0
    const leftMs = groupDeadlineMs(claim, this.#settings) - this.#clock.now()
    if (leftMs <= 0) return 0
    for (const { id } of groups) {
      if (standingOf(this.#state, id).isWhole && this.#allCanOpen(id)) continue
      this.#opening.delete(id)
      this.#ready.delete(id)
      return Math.min(leftMs, pollMs)
    }
    const held = groups.find(({ id }) => this.#waitsForOthers(id))
    if (held !== undefined) {
      // The first claim that may open wakes the others, so each of many can ask less often.
      return Math.min(outsideMs.pollMost, outsideMs.poll * claimsOfGroup(this.#caches, held.id).length)
    }
    for (const { id } of groups) this.#open(id)
    return 0
  }

  #open(id: string): void {
    this.#ready.delete(id)
    if (this.#opening.has(id)) return
    this.#opening.add(id)
    for (const { metadata } of claimsOfGroup(this.#caches, id))
      this.due.notify({ name: metadata.name, afterMs: 0 })
  }

  /** Whether pods outside groups are to be bound to their own nodes before those of the group open. */
  #waitsForOthers(id: string): boolean {
    if (this.#opening.has(id)) return false
    const now = this.#clock.now()
    const known = this.#ready.get(id)
    const sinceMs = known?.sinceMs ?? now
    if (now - sinceMs >= outsideMs.longest) return false
    // Every claim of the group asks.
    if (known !== undefined && now - known.checkedMs < outsideMs.poll) return known.isThreatened
    const isThreatened = wouldLoseRoom(this.#state, claimsOfGroup(this.#caches, id))
    this.#ready.set(id, { sinceMs, checkedMs: now, isThreatened })
    return isThreatened
  }

  #allCanOpen(id: string): boolean {
    return claimsOfGroup(this.#caches, id).every((claim) => {
      const node = this.#state.nodeOf(claim)
      return node !== undefined && canOpen(node)
    })
  }
}

/**
 * Whether a pod outside groups waits for another node and would fit on one of these claims: the scheduler tries it before
 * the group, which then no longer fits (gangs.md 7.4).
 */
function wouldLoseRoom(state: ClusterState, claims: readonly NodeClaim[]): boolean {
  const { plans, podGroups, pods } = state
  const own = new Set(claims.map(({ metadata }) => metadata.name))
  const nodes = claims.flatMap((claim) => state.nodeOf(claim) ?? [])
  for (const [uid, { target }] of plans.entries()) {
    if (target.kind === 'claim' && own.has(target.name)) continue
    const pod = pods.unplaced(uid)
    if (pod === undefined || podGroups.of(pod) !== undefined) continue
    if (nodes.some((node) => fitsEmptyNode(state, node, pod))) return true
  }
  return false
}

/** Whether the pod would fit if the node were empty and open; rules about other pods are ignored. */
function fitsEmptyNode(state: ClusterState, { metadata, spec, status }: Node, pod: Pod): boolean {
  if (!state.isWellFormed(pod)) return false
  const isSelected = Object.entries(pod.spec.nodeSelector ?? {}).every(
    ([key, value]) => ownValue(metadata.labels, key) === value,
  )
  if (!isSelected) return false
  const isTainted = (spec?.taints ?? []).some(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !sameTaint(taint, unregisteredTaint) &&
      startupTaintKind(taint, undefined, state.taintsOfCloud) === undefined &&
      !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  )
  if (isTainted) return false
  const allocatable = state.parsed(status?.allocatable)
  return Object.entries(podRequests(pod.spec)).every(
    ([name, amount]) => amount <= (ownValue(allocatable, name) ?? 0),
  )
}
