/** Replacements are cheaper, and cancelled commands leave no taints or conditions. */
import {
  disruptedTaint,
  karpenterKinds,
  labels,
  type Node,
  type NodeClaim,
  parseResources,
  type Pod,
  sameTaint,
} from '@tenon/api'
import { disruptionReasonOf, isOfDaemonSet } from './pods.ts'
import { annotation, type Invariant, quietMs } from './scene.ts'

const minute = 60_000
/** A command is cancelled after ten minutes; the rest is for a lost leader and retries. */
const markedBoundMs = 25 * minute

/** Names of the claims that the claim replaces. */
export const predecessorsOf = (claim: NodeClaim): readonly string[] =>
  annotation(claim, 'tenon.sh/replaces')?.split(' ') ?? []

/** Replacements of consolidation cost less than the nodes they replace. Overlays may change prices at any time. */
export const consolidationSaves: Invariant = ({ world, cloud: { prices }, clock, violate, claimByName }) => {
  const condemnedAt = new Map<string, number>()
  const addedAt = new Map<string, number>()
  const costOf = (claims: readonly NodeClaim[]): number =>
    claims.reduce(
      (sum, { metadata }) => sum + (prices.get(metadata.labels?.[labels.instanceType] ?? '') ?? 0),
      0,
    )
  return {
    claim(now, before) {
      const { name } = ((now ?? before) as NodeClaim).metadata
      if (now === undefined) addedAt.delete(name)
      else if (before === undefined) addedAt.set(name, clock.monotonic())
      if (now === undefined || disruptionReasonOf(now) === undefined) condemnedAt.delete(name)
      else if (!condemnedAt.has(name)) condemnedAt.set(name, clock.monotonic())
    },
    apiWrite({ method, plural, name = '' }) {
      if (method !== 'DELETE' || plural !== 'nodeclaims') return
      const gone = claimByName(name)
      if (gone === undefined || gone.metadata.deletionTimestamp !== undefined) return
      if (disruptionReasonOf(gone) !== 'Underutilized') return
      if (world.cluster.server.local.list(karpenterKinds.nodeOverlay).length > 0) return
      const since = condemnedAt.get(name) ?? 0
      const successors = world
        .claims()
        .filter((claim) => predecessorsOf(claim).includes(name))
        .filter(({ metadata }) => (addedAt.get(metadata.name) ?? 0) >= since)
      const names = new Set(successors.flatMap(predecessorsOf))
      const predecessors = [...names].flatMap((each) => claimByName(each) ?? [])
      if (successors.length === 0 || predecessors.length < names.size) return
      const [later, earlier] = [costOf(successors), costOf(predecessors)]
      if (later >= earlier)
        violate(
          'consolidationSaves',
          `${listed(predecessors)} for ${earlier} an hour become ${listed(successors)} for ${later}`,
        )
    },
  }
}

/**
 * Replacements are launched for pods that have to move or are pending; no node is replaced twice. With delayed
 * watches it is unknown which pods the decision was about.
 */
export const nothingReplacedTwice: Invariant = ({ world, blindMs, violate, podsOn, nodeByProviderId }) => ({
  claim(now, before) {
    if (now === undefined || before !== undefined || blindMs > quietMs) return
    const names = predecessorsOf(now)
    if (names.length === 0) return
    const claims = world.claims()
    const podsOf = ({ status }: NodeClaim): readonly Pod[] =>
      podsOn(nodeByProviderId(status?.providerID ?? '')?.metadata.name ?? '')
    const going = claims.filter(
      (claim) => claim.metadata.deletionTimestamp !== undefined || disruptionReasonOf(claim) !== undefined,
    )
    const moving = going.flatMap(podsOf).filter((pod) => !isOfDaemonSet(pod))
    const waiting = world.pods().filter(({ spec }) => spec.nodeName === undefined)
    const daemons = Math.max(0, ...going.map((claim) => cpuOf(podsOf(claim).filter(isOfDaemonSet))))
    const successors = claims.filter(
      (claim) => claim.status?.capacity === undefined && predecessorsOf(claim).join(' ') === names.join(' '),
    )
    const asked = successors.reduce(
      (sum, { spec }) => sum + (parseResources(spec.resources?.requests)['cpu'] ?? 0) - daemons,
      0,
    )
    const needed = cpuOf(moving) + cpuOf(waiting)
    if (asked > needed)
      violate(
        'nothingReplacedTwice',
        `${listed(successors)} are asked for ${asked}m CPU in place of ${names.join(', ')}, whose pods need ${needed}m`,
      )
  },
})

const cpuOf = (pods: readonly Pod[]): number =>
  pods.reduce(
    (sum, { spec }) =>
      spec.containers.reduce(
        (total, { resources }) => total + (parseResources(resources?.requests)['cpu'] ?? 0),
        sum,
      ),
    0,
  )

/** A node that stays after all accepts pods again. */
export const marksTakenOff: Invariant = ({ clock, violate, nodeByName, claimByProviderId }) => {
  const since = new Map<string, number>()
  return {
    node(now, before) {
      const { name } = ((now ?? before) as Node).metadata
      if (now === undefined || !isMarked(now)) since.delete(name)
      else if (!since.has(name)) since.set(name, clock.monotonic())
    },
    minute() {
      for (const [name, markedAt] of since) {
        if (clock.monotonic() - markedAt <= markedBoundMs) continue
        const claim = claimByProviderId(nodeByName(name)?.spec?.providerID ?? '')
        if (claim !== undefined && claim.metadata.deletionTimestamp === undefined)
          violate('marksTakenOff', `node ${name} is marked as one that goes, and stays`)
      }
    },
  }
}

const isMarked = ({ spec }: Node): boolean =>
  (spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint))

const listed = (claims: readonly NodeClaim[]): string =>
  claims.map(({ metadata }) => metadata.name).join(', ')
