/** Ownership of Clever Cloud's NodeGroups, and requests to the platform (clever-cloud.md 20). */
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import { type NodeGroup, nodeGroupKind, ownNames } from '@tenon/provider-clever-cloud'
import { isRefused } from '../cloud/clever-cloud.ts'
import { isPrivate } from '../faults/platform-faults.ts'
import type { OperatorProcess } from '../process/operator-process.ts'
import type { ApiWrite, Invariant, Scene } from './scene.ts'

const second = 1000
const idPrefix = 'clevercloud://'
/** Maximum age of a response when a process acts on it: it may be slow, or be paused for a minute. */
const evidenceMs = 120 * second

const groupIn = ({ world }: Pick<Scene, 'world'>, name: string): NodeGroup | undefined =>
  world.cluster.server.local.get(nodeGroupKind, undefined, name)

const claimOf = ({ metadata }: NodeGroup): string =>
  ownValue(metadata.labels, ownNames.nodeClaim) ?? metadata.name

const isOfGroups = ({ plural, name }: ApiWrite): boolean =>
  plural === nodeGroupKind.plural && name !== undefined

/** Groups of users are never changed and never adopted by a claim, whatever their labels. */
export const foreignGroupsKept: Invariant = (scene) => ({
  apiWrite(write) {
    if (!isOfGroups(write)) return
    const group = groupIn(scene, write.name ?? '')
    if (group !== undefined && isPrivate(group))
      scene.violate(
        'foreignGroupsKept',
        `${write.process.name} sends ${write.method} for NodeGroup ${write.name}, which a user made`,
      )
  },
  claim(now, before) {
    const id = now?.status?.providerID
    if (now === undefined || id === undefined || id === before?.status?.providerID) return
    const group = groupIn(scene, id.slice(idPrefix.length))
    if (group !== undefined && isPrivate(group))
      scene.violate(
        'foreignGroupsKept',
        `NodeClaim ${now.metadata.name} has the NodeGroup ${group.metadata.name}, which a user made`,
      )
  },
})

/** Only the first node of a group gets a provider ID, and it is that of the group. */
export const onlyFirstNodesStamped: Invariant = ({ violate }) => ({
  node(now, before) {
    const id = now?.spec?.providerID ?? ''
    if (now === undefined || id === (before?.spec?.providerID ?? '') || !id.startsWith(idPrefix)) return
    const { name } = now.metadata
    if (name !== `${id.slice(idPrefix.length)}-node0`)
      violate('onlyFirstNodesStamped', `node ${name} has got the provider ID ${id}`)
  },
})

/**
 * A group is deleted with its claim, after a rejection, or after a GET of the claim has returned 404; a list is
 * not enough.
 */
export const groupsDeletedOnEvidence: Invariant = (scene) => {
  const { clock, violate, claimByName } = scene
  /** By process and claim: when a GET last returned 404. */
  const missed = new Map<OperatorProcess, Map<string, number>>()
  return {
    apiRead({ process, plural, name, status }) {
      if (plural !== karpenterKinds.nodeClaim.plural || status !== 404) return
      const ofProcess = missed.get(process) ?? new Map<string, number>()
      missed.set(process, ofProcess.set(name, clock.monotonic()))
    },
    apiWrite(write) {
      const { process, method, name = '' } = write
      if (!isOfGroups(write) || method !== 'DELETE') return
      const group = groupIn(scene, name)
      if (group === undefined || isPrivate(group) || isRefused(group)) return
      if (group.metadata.deletionTimestamp !== undefined) return
      const claim = claimByName(claimOf(group))
      if (claim?.metadata.deletionTimestamp !== undefined) return
      const toldMs = missed.get(process)?.get(claimOf(group))
      if (claim === undefined && toldMs !== undefined && clock.monotonic() - toldMs <= evidenceMs) return
      const what = claim === undefined ? 'nobody asked for its NodeClaim' : 'its NodeClaim stays'
      violate('groupsDeletedOnEvidence', `${process.name} deletes NodeGroup ${name}: ${what}`)
    },
  }
}

/** What a process may not request, as the platform has just rejected it. */
interface HoldOut {
  readonly process: OperatorProcess
  readonly flavor: string
  readonly fromMs: number
  readonly untilMs: number
  readonly isQuota: boolean
}

/** Shortest pauses in milliseconds, minus how much earlier than the deletion the rejection may have been seen. */
const pausesMs = { quota: 60 * second, refused: 300 * second } as const

/**
 * A rejected flavor is not requested for a while. A process that deletes the rejected group has seen the
 * rejection; launches decided before that are in progress for at most `blindMs`.
 */
export const holdOutsKept: Invariant = (scene) => {
  const { clock, violate, blindMs, world } = scene
  let holdOuts: readonly HoldOut[] = []
  const refusalOf = ({ status }: NodeGroup): 'quota' | 'refused' =>
    status?.phase === 'QuotaExceeded' ||
    status?.conditions?.some(({ reason }) => reason === 'QuotaExceeded') === true
      ? 'quota'
      : 'refused'
  return {
    apiWrite(write) {
      const { process, method, plural, name, request } = write
      if (plural !== nodeGroupKind.plural) return
      const nowMs = clock.monotonic()
      holdOuts = holdOuts.filter(({ untilMs }) => untilMs > nowMs)
      if (method === 'DELETE') {
        const group = groupIn(scene, name ?? '')
        if (group === undefined || group.metadata.deletionTimestamp !== undefined) return
        if (!isRefused(group)) {
          // Capacity was freed, as far as the quota is concerned.
          holdOuts = holdOuts.filter((each) => each.process !== process || !each.isQuota)
          return
        }
        // A claim that is deleted deletes its group whether or not it knows of the rejection.
        if (isGoing(world.claims(), claimOf(group))) return
        const kind = refusalOf(group)
        holdOuts = [
          ...holdOuts,
          {
            process,
            flavor: group.spec.flavor,
            fromMs: nowMs + blindMs,
            untilMs: nowMs + pausesMs[kind] - second,
            isQuota: kind === 'quota',
          },
        ]
      }
      if (method !== 'POST') return
      const { metadata, spec } = JSON.parse(String(request.body)) as NodeGroup
      const held = holdOuts.find(
        (each) => each.process === process && each.flavor === spec.flavor && each.fromMs <= nowMs,
      )
      if (held !== undefined)
        violate(
          'holdOutsKept',
          `${process.name} asks for NodeGroup ${metadata.name} of flavor ${spec.flavor}, which the platform refused ${Math.round((nowMs - held.fromMs + blindMs) / second)} s ago`,
        )
    },
  }
}

const isGoing = (claims: readonly NodeClaim[], name: string): boolean =>
  claims.every(({ metadata }) => metadata.name !== name || metadata.deletionTimestamp !== undefined)
