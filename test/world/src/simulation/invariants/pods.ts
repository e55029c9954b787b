/** Pods are not disrupted too early. */
import {
  annotations,
  disruptedTaint,
  type Node,
  type NodeClaim,
  parseDuration,
  type Pod,
  tolerates,
  untoleratedTaint,
} from '@tenon/api'
import type { HttpRequest } from '@tenon/runtime'
import { openMinutes } from '../workload/wanted.ts'
import { annotation, type ApiWrite, clockErrorMs, type Invariant, type Scene } from './scene.ts'

const minute = 60_000
const stuckMs = minute

const isTerminal = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'
const isLeaving = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined
const isMirror = (pod: Pod): boolean => annotation(pod, 'kubernetes.io/config.mirror') !== undefined
const isUndisturbed = (pod: Pod): boolean =>
  (pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, disruptedTaint))

/** When the claim's termination grace period ends; Infinity without one. */
function deadlineOf(claim: NodeClaim | undefined): number {
  const text = claim === undefined ? undefined : annotation(claim, annotations.terminationTimestamp)
  return text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text)
}

/**
 * By which invariant the pod is protected now, and was `forMs` ago: its annotation do-not-disrupt, or its windows.
 */
function protectionOf(pod: Pod, nowMs: number, forMs = 0): 'doNotDisrupt' | 'windowsKept' | undefined {
  const value = annotation(pod, annotations.doNotDisrupt)
  if (value === 'true') return 'doNotDisrupt'
  const lasts = value === undefined ? undefined : parseDuration(value)
  const started = Date.parse(pod.status?.startTime ?? '')
  if (lasts !== undefined && !Number.isNaN(started) && nowMs < started + lasts - clockErrorMs)
    return 'doNotDisrupt'
  const [from, to] = annotation(pod, openMinutes)?.split('-').map(Number) ?? []
  if (from === undefined || to === undefined) return undefined
  const day = 24 * 60 * minute
  const sinceOpen = (nowMs - from * minute + clockErrorMs) % day
  return sinceOpen < (to - from) * minute + 2 * clockErrorMs + forMs ? undefined : 'windowsKept'
}

/** Protected pods are not evicted, and pods are only deleted when their node's deadline requires it. */
export const podsLeftAlone: Invariant = ({ world, clock, violate, nodeByName, claimByProviderId }) => ({
  apiWrite({ method, plural, subresource, namespace, name = '', request }) {
    if (plural !== 'pods' || namespace === undefined) return
    const isEviction = method === 'POST' && subresource === 'eviction'
    if (!isEviction && method !== 'DELETE') return
    const pod = world.cluster.server.local.get<Pod>(podType, namespace, name)
    if (pod === undefined || isTerminal(pod) || isLeaving(pod)) return
    // The server rejects a request with the UID of another pod of the same name.
    if (!isMeant(pod, request)) return
    const now = clock.now()
    if (isEviction) {
      const invariant = protectionOf(pod, now)
      if (invariant !== undefined) violate(invariant, `pod ${name} is evicted in spite of its annotation`)
      return
    }
    const node = nodeByName(pod.spec.nodeName ?? '')
    const deadline = deadlineOf(claimByProviderId(node?.spec?.providerID ?? ''))
    const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000
    if (now < deadline - graceMs - clockErrorMs)
      violate('deletionBeforeDeadline', `pod ${name} is deleted, not evicted, before its node's deadline`)
  },
})

function isMeant({ metadata }: Pod, { body = '' }: HttpRequest): boolean {
  const named = /"preconditions":\{[^}]*"uid":"([^"]+)"/.exec(String(body))?.[1]
  return named === undefined || named === metadata.uid
}

const podType = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true } as const

/** An instance is deleted only when the pods of its node are gone, or its deadline has passed. */
export const drainedBeforeEnd: Invariant = (scene) => ({
  cloudWrite({ demand: { end: providerId } }) {
    if (providerId === undefined) return
    const { clock, blindMs, violate, podsOn, boundMs } = scene
    const claim = scene.claimByProviderId(providerId)
    const node = scene.nodeByProviderId(providerId)
    if (claim === undefined || node === undefined) return
    const now = clock.now()
    if (now > deadlineOf(claim) - clockErrorMs) return
    // The kubelet took another name, and its former Node still counts as ready: only the watch of Nodes tells.
    const ageMs = now - Date.parse(node.metadata.creationTimestamp ?? '')
    const isRenamed = claim.status?.nodeName !== node.metadata.name
    if (isRenamed && scene.viewsMayBeWrong() && ageMs < scene.nodeMonitorGraceMs + blindMs) return
    const left = podsOn(node.metadata.name).filter(
      (pod) =>
        !isTerminal(pod) &&
        !isMirror(pod) &&
        !isUndisturbed(pod) &&
        boundMs(pod) > blindMs &&
        !(isLeaving(pod) && now - Date.parse(pod.metadata.deletionTimestamp ?? '') > stuckMs - clockErrorMs),
    )
    if (left.length > 0) {
      const names = left.map(({ metadata }) => metadata.name).join(', ')
      violate('drainedBeforeEnd', `the instance of node ${node.metadata.name} ends under the pods ${names}`)
    }
  },
})

/** After its deadline a node is removed, whatever its pods say. */
export const deadlineKept: Invariant = ({ world, clock, violate, podsOn, nodeByProviderId }) => ({
  minute() {
    for (const claim of world.claims()) {
      if (claim.metadata.deletionTimestamp === undefined) continue
      const node = nodeByProviderId(claim.status?.providerID ?? '')
      if (node === undefined || clock.now() < deadlineOf(claim) + deadlineBoundMs) continue
      const first = podsOn(node.metadata.name).find(
        (pod) => !isTerminal(pod) && !isLeaving(pod) && !isUndisturbed(pod),
      )
      if (first !== undefined)
        violate(
          'deadlineKept',
          `NodeClaim ${claim.metadata.name} is past its deadline and pod ${first.metadata.name} was not told to go`,
        )
    }
  },
})

/** Crashes, lost leases and storms may delay a deletion by this much after its deadline. */
const deadlineBoundMs = 20 * 60_000

/** No pod is bound to a node whose pool's taints it does not tolerate. */
export const placementAllowed: Invariant = ({ violate, nodeByName, claimByProviderId }) => ({
  pod(now, before) {
    const nodeName = now?.spec.nodeName
    if (now === undefined || nodeName === undefined || before?.spec.nodeName === nodeName) return
    const claim = claimByProviderId(nodeByName(nodeName)?.spec?.providerID ?? '')
    const taint = untoleratedTaint(claim?.spec.taints ?? [], now.spec.tolerations ?? [])
    if (taint !== undefined)
      violate(
        'placementAllowed',
        `pod ${now.metadata.name} runs on ${nodeName} in spite of taint ${taint.key}`,
      )
  },
})

/** Voluntary disruption does not affect protected nodes, or nodes with protected pods. */
export const protectedNodesKept: Invariant = (scene) => {
  const { clock, blindMs, violate, podsOn, boundMs } = scene
  const protectedSince = new Map<string, number>()
  return {
    node(now, before) {
      const { name } = ((now ?? before) as Node).metadata
      const isOn = now !== undefined && annotation(now, annotations.doNotDisrupt) === 'true'
      if (!isOn) protectedSince.delete(name)
      else if (!protectedSince.has(name)) protectedSince.set(name, clock.monotonic())
    },
    apiWrite(write) {
      const disrupted = disruptedBy(scene, write)
      // Nothing protects a broken node from its repair (wanted.md 2).
      if (disrupted === undefined || disrupted.reason === 'Unhealthy') return
      const { claim, node } = disrupted
      const { name } = claim.metadata
      if (
        clock.monotonic() - (protectedSince.get(node.metadata.name) ?? clock.monotonic()) >
        doomedMs + blindMs
      )
        violate('protectedNodesKept', `NodeClaim ${name} is disrupted, its node must not be`)
      const held = podsOn(node.metadata.name).find(
        (pod) =>
          !isTerminal(pod) &&
          !isLeaving(pod) &&
          boundMs(pod) > blindMs &&
          protectionOf(pod, clock.now(), doomedMs + blindMs) !== undefined &&
          !Number.isFinite(parseDuration(claim.spec.terminationGracePeriod ?? '') ?? Number.NaN),
      )
      if (held === undefined) return
      const isOfWindows = protectionOf(held, clock.now(), doomedMs + blindMs) === 'windowsKept'
      const invariant = isOfWindows ? 'windowsKept' : 'protectedNodesKept'
      violate(invariant, `NodeClaim ${name} is disrupted under pod ${held.metadata.name}`)
    },
  }
}

/** From the decision to the deletion, while replacements start: protection may come too late. */
const doomedMs = 11 * 60_000

/** A node that is removed because it is empty is empty. */
export const emptyNodesAreEmpty: Invariant = (scene) => ({
  apiWrite(write) {
    const { blindMs, violate, podsOn, boundMs } = scene
    const disrupted = disruptedBy(scene, write)
    if (disrupted?.reason !== 'Empty') return
    const { name } = disrupted.node.metadata
    const left = podsOn(name).find(
      (pod) =>
        !isTerminal(pod) &&
        !isLeaving(pod) &&
        !isMirror(pod) &&
        !isOfDaemonSet(pod) &&
        boundMs(pod) > blindMs,
    )
    if (left !== undefined)
      violate('emptyNodesAreEmpty', `node ${name} goes as empty, and pod ${left.metadata.name} runs there`)
  },
})

export const isOfDaemonSet = ({ metadata }: Pod): boolean =>
  (metadata.ownerReferences ?? []).some(({ kind }) => kind === 'DaemonSet')

interface Disrupted {
  readonly claim: NodeClaim
  readonly node: Node
  readonly reason: string
}

/** The node that a write begins to disrupt voluntarily. */
function disruptedBy(scene: Scene, { method, plural, name = '' }: ApiWrite): Disrupted | undefined {
  if (method !== 'DELETE' || plural !== 'nodeclaims') return undefined
  const claim = scene.claimByName(name)
  const node = scene.nodeByProviderId(claim?.status?.providerID ?? '')
  if (claim === undefined || node === undefined || claim.metadata.deletionTimestamp !== undefined)
    return undefined
  const reason = disruptionReasonOf(claim)
  return reason === undefined ? undefined : { claim, node, reason }
}

/** Why the controller decided to disrupt the claim's node, if it did. */
export const disruptionReasonOf = ({ status }: NodeClaim): string | undefined =>
  status?.conditions?.find((each) => each.type === 'DisruptionReason' && each.status === 'True')?.reason

/** Whether the controller decided to disrupt the claim's node. */
export const isVoluntary = (claim: NodeClaim): boolean => disruptionReasonOf(claim) !== undefined
