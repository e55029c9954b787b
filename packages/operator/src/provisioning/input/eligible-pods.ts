/** Which pods are part of a decision, and what their volumes require (scheduling.md 2, 8). */
import { labels, type Pod, type SelectorLookups, type Service, withDefaultSpread } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import {
  type DevicesInput,
  FreeVolumes,
  noteFreeVolumes,
  type PodOrigin,
  type PodProblems,
  type PodVolumes,
  problemText,
  renderPodProblems,
  renderVolumeProblem,
  resolveVolumes,
  shapeProblems,
  validatePod,
  type VolumeLookups,
} from '@tenon/engine'
import {
  claimsOfPod,
  type DeviceSources,
  devicesInput,
  extendedClaimOf,
  extendedResources,
  requestsSome,
} from './device-input.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { uselessText } from '../../state/nodes/node-evidence.ts'
import { eligibilityPolicy, type ProviderPodRules } from '../../decide/eligibility-policy.ts'
import { canonicalPod } from '../../decide/canonical-keys.ts'
import { type ApplicationCaches, type Caches, indexes } from '../../state/caches.ts'
import type { ServedRequest } from '../../state/pods/request-pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

export interface PodSources extends DeviceSources {
  readonly caches: DeviceSources['caches'] & Pick<Caches, 'applications'>
  readonly state: DeviceSources['state'] &
    Pick<ClusterState, 'buffers' | 'evidence' | 'isWellFormed' | 'podGroups' | 'predictions' | 'requests'>
  readonly provider: ProviderPodRules
  readonly settings: Pick<Settings, 'defaultSpread'>
}

/** Pods checked between two yields to the event loop. */
const podsPerStep = 16

/** A pending pod that is left out of the decision. */
export interface IgnoredPod {
  readonly pod: Pod
  readonly reason: string
  /** Set for pods that want no managed node: no event is recorded. */
  readonly isSilent: boolean
}

/** A pod that no node can help. */
export interface RefusedPod {
  readonly pod: Pod
  readonly reason: string
  /** When it is decided about again, Unix milliseconds; absent unless the API server refuses its NodeClaims. */
  readonly untilMs?: number
}

/** A pod that is not pending: it has to leave its node, or is a placeholder. */
export interface PlacedPod {
  readonly pod: Pod
  readonly origin: Exclude<PodOrigin, 'pending'>
}

export interface EligiblePods {
  /** Pods to decide about; those that get the default spread are copies. */
  readonly pods: readonly Pod[]
  readonly origins: ReadonlyMap<string, PodOrigin>
  readonly volumes: ReadonlyMap<string, PodVolumes>
  /** Undefined if pods with ResourceClaims are not served. */
  readonly devices?: DevicesInput
  readonly ignored: readonly IgnoredPod[]
  readonly refused: readonly RefusedPod[]
}

/** Placeholder pods of CapacityBuffers and ProvisioningRequests. */
export function placeholderPods({
  buffers,
  podGroups,
  requests,
}: Pick<ClusterState, 'buffers' | 'podGroups' | 'requests'>): readonly PlacedPod[] {
  const isHeld = ({ isBooked, request }: ServedRequest) =>
    !isBooked && podGroups.roundOf(request.metadata.uid ?? '') !== undefined
  return [
    ...buffers.all().map((pod): PlacedPod => ({ pod, origin: 'buffer' })),
    ...requests
      .all()
      .filter((served) => !isHeld(served))
      .flatMap(({ pods, class: of }) =>
        pods.map((pod): PlacedPod => ({ pod, origin: of === 'check' ? 'check' : 'request' })),
      ),
  ]
}

/** Adds the plans of placeholder pods, whose room stays where it is if it can. */
export function withKeptRoom(
  { buffers, requests }: Pick<ClusterState, 'buffers' | 'requests'>,
  planned: ReadonlyMap<string, string>,
  staying: readonly StateNode[],
): ReadonlyMap<string, string> {
  const hosts = [...requests.hosts()].filter(([uid]) => !planned.has(uid) && requests.has(uid))
  hosts.push(...buffers.hosts())
  if (hosts.length === 0) return planned
  const present = new Map(staying.map(({ name, providerID }) => [providerID, name]))
  const all = new Map(planned)
  for (const [uid, host] of hosts) {
    const name = present.get(host)
    if (name !== undefined) all.set(uid, name)
  }
  return all
}

/** Reads well-formed pods as decisions do: with canonical label keys and the default spread. */
export function podReader({ provider, settings, caches, state }: PodSources): (pod: Pod) => Pod {
  const applications = caches.applications === undefined ? undefined : applicationLookups(caches.applications)
  const { labelAliases } = provider
  return (pod) => {
    const readable = canonicalPod(state.evidence.adjusted(pod), labelAliases)
    return applications === undefined
      ? readable
      : withDefaultSpread(readable, settings.defaultSpread, applications)
  }
}

/**
 * Sorts pods, in steps, into those to decide about, ignored and refused ones. Pending pods are validated; pods on deleted
 * nodes and placeholder pods only as far as they must be read.
 */
export function* eligiblePods(
  sources: PodSources,
  pending: readonly Pod[],
  leaving: readonly PlacedPod[],
  lookups: VolumeLookups,
): Generator<undefined, EligiblePods, undefined> {
  const { caches, provider, state } = sources
  const policy = eligibilityPolicy(provider)
  const ignored: IgnoredPod[] = []
  const refused: RefusedPod[] = []
  const pods: Pod[] = []
  const origins = new Map<string, PodOrigin>()
  const volumes = new Map<string, PodVolumes>()
  const read = podReader(sources)
  const freeVolumes = new FreeVolumes(lookups)
  const claimsOf = new Map<string, readonly string[]>()
  const withExtendedClaim = new Set<string>()
  const served = extendedResources(sources)
  let usesServed = false
  const take = (pod: Pod): void => {
    const claims = claimsOfPod(caches, pod)
    if ('problem' in claims) {
      refused.push({ pod, reason: claims.problem })
      return
    }
    const { uid = '' } = pod.metadata
    if (claims.names.length > 0) claimsOf.set(uid, claims.names)
    if (requestsSome(pod, served)) {
      usesServed = true
      const own = origins.has(uid) ? undefined : extendedClaimOf(caches, pod)
      if (own !== undefined) {
        withExtendedClaim.add(uid)
        claimsOf.set(uid, [...claims.names, own])
      }
    }
    if ((pod.spec.volumes ?? []).length > 0) {
      const resolved = resolveVolumes(pod, lookups, policy, freeVolumes)
      if ('kind' in resolved) {
        refused.push({ pod, reason: renderVolumeProblem(resolved) })
        return
      }
      volumes.set(pod.metadata.uid ?? '', resolved)
    }
    pods.push(read(pod))
  }
  for (const pod of pending) if (state.isWellFormed(pod)) noteFreeVolumes(pod, lookups, freeVolumes)
  for (const [at, pod] of pending.entries()) {
    if (at % podsPerStep === 0) yield
    try {
      const problems = validatePod(pod, lookups, policy, state.isWellFormed(pod))
      const held = problems === undefined ? state.evidence.holdOn(pod) : undefined
      if (held !== undefined) refused.push({ pod, reason: uselessText(held) })
      else if (problems === undefined) take(pod)
      else ignored.push(ignoredPod(pod, problems))
    } catch (error) {
      refused.push(unreadable(pod, error))
    }
  }
  for (const [at, { pod, origin }] of leaving.entries()) {
    if (at % podsPerStep === 0) yield
    try {
      const problems = state.isWellFormed(pod) ? undefined : shapeProblems(pod)
      if (problems !== undefined) {
        refused.push({ pod, reason: renderPodProblems(problems) })
        continue
      }
      origins.set(pod.metadata.uid ?? '', origin)
      // The pod that replaces it may request something else.
      const isMade = origin !== 'buffer' && origin !== 'request' && origin !== 'check'
      take(isMade ? withoutLabelsOfNode(state.predictions.remade(pod)) : pod)
    } catch (error) {
      refused.push(unreadable(pod, error))
    }
  }
  const gone = leaving.filter(({ origin }) => origin === 'deleting')
  const users = {
    claimsOf,
    withExtendedClaim,
    extendedResources: usesServed ? served : new Map<string, string>(),
  }
  const devices = devicesInput(sources, users, new Set(gone.map(({ pod }) => pod.metadata.uid ?? '')))
  return { pods, origins, volumes, ignored, refused, ...(devices && { devices }) }
}

/**
 * The pod without the zone and region that the API server copied to its labels at its binding, from 1.35 on: the pod that
 * replaces it has none until it is bound itself, maybe elsewhere. The same object if it has none.
 */
const withoutLabelsOfNode = perObject((pod: Pod): Pod => {
  const { labels: all = {} } = pod.metadata
  if (!labelsOfNode.some((key) => Object.hasOwn(all, key))) return pod
  const own = Object.fromEntries(Object.entries(all).filter(([key]) => !labelsOfNode.includes(key)))
  return { ...pod, metadata: { ...pod.metadata, labels: own } }
})

const labelsOfNode: readonly string[] = [labels.zone, labels.region]

/** An unexpected error costs only the pod it is about. */
function unreadable(pod: Pod, error: unknown): RefusedPod {
  return { pod, reason: `the pod, or an object that it references, is invalid: ${problemText(error)}` }
}

function ignoredPod(pod: Pod, problems: PodProblems): IgnoredPod {
  return { pod, reason: renderPodProblems(problems), isSilent: problems.silent }
}

/** Lookups for one pass: Services of a namespace are collected once. */
function applicationLookups(caches: ApplicationCaches): SelectorLookups {
  const services = new Map<string, readonly Service[]>()
  return {
    services: (namespace) => {
      let found = services.get(namespace)
      if (found === undefined) {
        found = caches.services.byIndex(indexes.byNamespace, namespace)
        services.set(namespace, found)
      }
      return found
    },
    replicationController: (namespace, name) => caches.replicationControllers.get({ namespace, name }),
    replicaSet: (namespace, name) => caches.replicaSets.get({ namespace, name }),
    statefulSet: (namespace, name) => caches.statefulSets.get({ namespace, name }),
  }
}
