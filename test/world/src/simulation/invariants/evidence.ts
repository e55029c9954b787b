/** Faulty instances are removed in time, healthy ones are kept, and no failing launch is repeated for ever. */
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { poolOf } from './instances.ts'
import { isOfDaemonSet } from './pods.ts'
import type { Invariant } from './scene.ts'

const minute = 60_000
const hour = 60 * minute
/** A node that accepts pods for this long without getting its own is useless. */
const openMs = 3 * minute
/** The initialization timeout is 15 min; the rest is for lost leaders and retries. */
const initializationBoundMs = 40 * minute

const isTrue = (object: Node | NodeClaim, wanted: string): boolean =>
  (object.status?.conditions ?? []).some(({ type, status }) => type === wanted && status === 'True')

/** A node that accepts new pods, apart from the taints of its own pool. */
const isOpen = (node: Node, claim: NodeClaim): boolean =>
  isTrue(node, 'Ready') &&
  isTrue(claim, 'Initialized') &&
  node.metadata.deletionTimestamp === undefined &&
  claim.metadata.deletionTimestamp === undefined &&
  node.spec?.unschedulable !== true &&
  (node.spec?.taints ?? []).every(
    ({ key, effect }) =>
      effect === 'PreferNoSchedule' ||
      (claim.spec.taints ?? []).some((own) => own.key === key && own.effect === effect),
  )

/** A pod that has been pending since its creation. */
const isWaiting = ({ metadata, spec, status }: Pod): boolean =>
  spec.nodeName === undefined &&
  metadata.deletionTimestamp === undefined &&
  (status?.phase ?? 'Pending') === 'Pending'

/** A node that no workload pod has been bound to yet. */
interface Bought {
  /** `namespace/name` of pods that it was launched for. */
  readonly pods: readonly string[]
  nodeName: string | undefined
  openSinceMs: number | undefined
}

/** Per pod and hour, at most one node is launched that becomes ready but gets neither that pod nor another one. */
export const nothingBoughtInVain: Invariant = ({
  clock,
  violate,
  claimByName,
  nodeByProviderId,
  podByKey,
}) => {
  const bought = new Map<string, Bought>()
  const nodeNames = new Map<string, string>()
  /** By UID of a pod: the last useless node that was launched for it, and when. */
  const inVain = new Map<string, { readonly claim: string; readonly atMs: number }>()
  const forget = (claim: string): void => {
    const nodeName = bought.get(claim)?.nodeName
    if (nodeName !== undefined) nodeNames.delete(nodeName)
    bought.delete(claim)
  }
  const look = (name: string, entry: Bought): void => {
    const claim = claimByName(name)
    const node = nodeByProviderId(claim?.status?.providerID ?? '')
    if (node !== undefined && entry.nodeName === undefined) {
      entry.nodeName = node.metadata.name
      nodeNames.set(node.metadata.name, name)
    }
    if (claim === undefined || node === undefined || !isOpen(node, claim)) entry.openSinceMs = undefined
    else entry.openSinceMs ??= clock.monotonic()
  }
  return {
    bought(claim, pods) {
      bought.set(claim, { pods, nodeName: undefined, openSinceMs: undefined })
    },
    claim(now, before) {
      const { name } = ((now ?? before) as NodeClaim).metadata
      const entry = bought.get(name)
      if (now === undefined) forget(name)
      else if (entry !== undefined) look(name, entry)
    },
    node(now, before) {
      const name = nodeNames.get(((now ?? before) as Node).metadata.name)
      const entry = name === undefined ? undefined : bought.get(name)
      if (name !== undefined && entry !== undefined) look(name, entry)
    },
    pod(now, before) {
      const nodeName = now?.spec.nodeName
      if (now === undefined) inVain.delete(before?.metadata.uid ?? '')
      if (now === undefined || nodeName === undefined || isOfDaemonSet(now)) return
      const claim = nodeNames.get(nodeName)
      if (claim !== undefined) forget(claim)
    },
    minute() {
      const nowMs = clock.monotonic()
      for (const [name, entry] of bought) {
        look(name, entry)
        if (entry.openSinceMs === undefined || nowMs - entry.openSinceMs < openMs) continue
        forget(name)
        for (const key of entry.pods) {
          const pod = podByKey(key)
          const uid = pod?.metadata.uid ?? ''
          if (pod === undefined || !isWaiting(pod)) continue
          const last = inVain.get(uid)
          if (last !== undefined && nowMs - last.atMs < hour)
            violate(
              'nothingBoughtInVain',
              `NodeClaims ${last.claim} and ${name} were bought for pod ${key} within an hour; no pod came to either, and it waits`,
            )
          inVain.set(uid, { claim: name, atMs: nowMs })
        }
      }
    },
  }
}

/** Maximum number of failed launches of one leader per hour, workload and NodePool. The next leader starts anew. */
const mostInVain = 6

/** Concurrent launches: none of them was a reaction to the failure of another. */
interface Round {
  readonly sinceMs: number
  untilMs: number
  /** Maximum number of instances that one claim requested. */
  creations: number
}

/** Whatever the cause, failed launches per hour, workload and NodePool are bounded. */
export const launchesBounded: Invariant = ({ clock, violate, claimByName, nodeByName, podByKey }) => {
  const bought = new Map<
    string,
    { readonly workload: string; readonly pods: readonly string[]; readonly atMs: number }
  >()
  const creations = new Map<string, number>()
  const leaders = new Map<string, string>()
  const served = new Set<string>()
  const inVain = new Map<string, readonly Round[]>()
  return {
    bought(claim, pods) {
      const owners = pods.flatMap((key) => workloadOf(podByKey(key)) ?? [])
      const [workload] = owners
      if (workload !== undefined) bought.set(claim, { workload, pods, atMs: clock.monotonic() })
    },
    cloudWrite({ process, demand: { launchFor: claim = '' } }) {
      if (!bought.has(claim)) return
      creations.set(claim, (creations.get(claim) ?? 0) + 1)
      leaders.set(claim, process.name)
    },
    pod(now, before) {
      const nodeName = now?.spec.nodeName
      if (now === undefined || nodeName === undefined || before?.spec.nodeName !== undefined) return
      const claim = nodeByName(nodeName)?.metadata.ownerReferences?.find(({ kind }) => kind === 'NodeClaim')
      if (claim !== undefined && !isOfDaemonSet(now)) served.add(claim.name)
    },
    claim(now, before) {
      if (now !== undefined || before === undefined) return
      const { name } = before.metadata
      const plan = bought.get(name)
      const asked = creations.get(name) ?? 0
      const leader = leaders.get(name)
      for (const known of [bought, creations, leaders]) known.delete(name)
      if (served.delete(name) || plan === undefined || asked === 0) return
      // A pod that was deleted or runs elsewhere did not need the instance any more.
      const waits = plan.pods.some((key) => {
        const pod = podByKey(key)
        return pod !== undefined && isWaiting(pod)
      })
      if (!waits || claimByName(name) !== undefined) return
      const nowMs = clock.monotonic()
      const key = `${plan.workload} from NodePool ${poolOf(before)} by ${leader}`
      const rounds = (inVain.get(key) ?? []).filter(({ untilMs }) => nowMs - untilMs < hour)
      const last = rounds.at(-1)
      if (last !== undefined && plan.atMs < last.untilMs) {
        last.untilMs = nowMs
        last.creations = Math.max(last.creations, asked)
      } else inVain.set(key, [...rounds, { sinceMs: plan.atMs, untilMs: nowMs, creations: asked }])
      const all = inVain.get(key) ?? []
      const sum = all
        .filter(({ sinceMs }) => nowMs - sinceMs < hour)
        .reduce((total, round) => total + round.creations, 0)
      if (sum > mostInVain)
        violate(
          'launchesBounded',
          `${sum} instances were asked for in vain within an hour for ${key}, the last by NodeClaim ${name}`,
        )
    },
  }
}

/** The workload of a pod; undefined if it was deleted. */
function workloadOf(pod: Pod | undefined): string | undefined {
  if (pod === undefined) return undefined
  const owner = pod.metadata.ownerReferences?.[0]
  return owner === undefined ? `pod ${pod.metadata.name}` : `${owner.kind} ${owner.name}`
}

/** A claim whose node has registered but does not become ready is removed in time. */
export const initializedInTime: Invariant = ({ clock, violate }) => {
  const since = new Map<string, number>()
  return {
    claim(now, before) {
      const { name } = ((now ?? before) as NodeClaim).metadata
      const isOnItsWay =
        now !== undefined &&
        now.metadata.deletionTimestamp === undefined &&
        isTrue(now, 'Registered') &&
        !isTrue(now, 'Initialized')
      if (!isOnItsWay) since.delete(name)
      else if (!since.has(name)) since.set(name, clock.monotonic())
    },
    minute() {
      for (const [name, fromMs] of since)
        if (clock.monotonic() - fromMs > initializationBoundMs)
          violate('initializedInTime', `the node of NodeClaim ${name} has taken no pods for 40 min and stays`)
    },
  }
}

/** No instance is deleted whose claim stays. */
export const healthyInstancesKept: Invariant = ({ violate, claimByProviderId }) => ({
  cloudWrite({ demand: { end: id } }) {
    const claim = id === undefined ? undefined : claimByProviderId(id)
    if (claim !== undefined && claim.metadata.deletionTimestamp === undefined)
      violate(
        'healthyInstancesKept',
        `the instance ${id} of NodeClaim ${claim.metadata.name}, which stays, is deleted`,
      )
  },
})
