/** Instances and claims match: no duplicates, no orphans, no losses. */
import {
  karpenterKinds,
  labels,
  type Node,
  type NodeClaim,
  parseDuration,
  parseNillableDuration,
  terminationFinalizer,
} from '@tenon/api'
import { abandonedAnnotation } from '../workload/workload-context.ts'
import { annotation, type Invariant } from './scene.ts'

const minute = 60_000
/** The sweep runs every 5 minutes for instances older than 5; the rest is for retries and hanging deletions. */
const orphanBoundMs = 60 * minute

/** No claim has two instances. */
export const oneInstancePerClaim: Invariant = ({ cloud, violate, claimByName, mayHaveTwo }) => {
  const check = (): void => {
    const byClaim = Map.groupBy(cloud.instances(), ({ claim }) => claim)
    for (const [claim, all] of byClaim) {
      const instances = all.map(({ id }) => id)
      if (claim !== '' && instances.length > 1 && claimByName(claim) !== undefined && !mayHaveTwo(claim))
        violate('oneInstancePerClaim', `NodeClaim ${claim} has the instances ${instances.join(', ')}`)
    }
  }
  return { cloudWritten: check }
}

/** An instance is only requested once its claim's finalizer is stored. */
export const finalizerFirst: Invariant = ({ violate, claimByName }) => ({
  cloudWrite({ demand: { launchFor: name } }) {
    const claim = name === undefined ? undefined : claimByName(name)
    if (claim === undefined) return
    if (!(claim.metadata.finalizers ?? []).includes(terminationFinalizer))
      violate('finalizerFirst', `an instance is created for NodeClaim ${name}, which has no finalizer yet`)
  },
})

/** A claim is removed only after its instance, unless a user removed its finalizer. */
export const finalizerLast: Invariant = ({ cloud, violate }) => ({
  claim(now, before) {
    if (now !== undefined || before === undefined) return
    if (annotation(before, abandonedAnnotation) !== undefined) return
    const id = before.status?.providerID
    const instance = cloud.instances().find(({ providerId }) => providerId === id)
    if (instance !== undefined)
      violate(
        'finalizerLast',
        `NodeClaim ${before.metadata.name} is gone, its instance ${instance.id} is ${instance.state}`,
      )
  },
})

/** No instance is without a claim for longer than the sweep takes. */
export const noOrphanedInstance: Invariant = ({ cloud, clock, violate, claimByName, claimByProviderId }) => {
  const since = new Map<string, number>()
  return {
    minute() {
      const orphans = cloud
        .instances()
        .filter(
          ({ claim, isAlive, providerId }) =>
            claim !== '' && isAlive && !claimByName(claim) && !claimByProviderId(providerId),
        )
        .map(({ id }) => id)
      for (const id of since.keys()) if (!orphans.includes(id)) since.delete(id)
      for (const id of orphans) {
        const first = since.get(id) ?? clock.monotonic()
        since.set(id, first)
        if (clock.monotonic() - first > orphanBoundMs)
          violate('noOrphanedInstance', `instance ${id} has had no NodeClaim for an hour`)
      }
    },
  }
}

/** The spec of a claim never changes. */
export const claimSpecUnchanged: Invariant = ({ violate }) => ({
  claim(now, before) {
    if (now === undefined || before === undefined || now.metadata.uid !== before.metadata.uid) return
    if (now.spec !== before.spec && JSON.stringify(now.spec) !== JSON.stringify(before.spec))
      violate('claimSpecUnchanged', `the spec of NodeClaim ${now.metadata.name} has changed`)
  },
})

/** A node of a registered claim does not keep the unregistered taint. */
export const registrationTaintRemoved: Invariant = ({ violate, nodeByName, claimByProviderId, clock }) => {
  /** Nodes with the taint. */
  const tainted = new Set<string>()
  const since = new Map<string, number>()
  return {
    node(now, before) {
      const { name } = ((now ?? before) as Node).metadata
      if (now?.spec?.taints?.some(({ key }) => key === 'karpenter.sh/unregistered') === true)
        tainted.add(name)
      else tainted.delete(name)
    },
    minute() {
      const stuck = [...tainted].flatMap((name) => {
        const claim = claimByProviderId(nodeByName(name)?.spec?.providerID ?? '')
        return claim !== undefined && isRegistered(claim) ? [claim.metadata.name] : []
      })
      for (const name of since.keys()) if (!stuck.includes(name)) since.delete(name)
      for (const name of stuck) {
        const first = since.get(name) ?? clock.monotonic()
        since.set(name, first)
        if (clock.monotonic() - first > 20 * minute)
          violate('registrationTaintRemoved', `the node of NodeClaim ${name} is still unregistered`)
      }
    },
  }
}

/** Whether the claim is registered and not being deleted. */
const isRegistered = ({ metadata, status }: NodeClaim): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some((each) => each.type === 'Registered' && each.status === 'True') === true

/** Claims are deleted when they expire, with soft expiration at its deadline. */
export const expiredInTime: Invariant = ({ world, clock, violate }) => {
  /** Unix time at which claims expire. */
  const dueAt = new Map<string, number>()
  const deadlines = new Map<string, string | undefined>()
  const changedAt = new Map<string, number>()
  const graceMs = (claim: string): number => {
    const found = world.cluster.server.local.get(karpenterKinds.nodeClaim, undefined, claim)
    const pool = found && poolOf(found)
    const deadline = deadlines.get(pool ?? '')
    if (clock.now() - (changedAt.get(pool ?? '') ?? 0) <= 15 * minute) return Number.POSITIVE_INFINITY
    return deadline === undefined ? 0 : (parseDuration(deadline) ?? Number.POSITIVE_INFINITY)
  }
  return {
    pool(now, before) {
      if (now === undefined) return
      const { name } = now.metadata
      const soft = annotation(now, 'tenon.sh/expiration') === 'soft'
      const deadline = soft ? (annotation(now, 'tenon.sh/expiration-deadline') ?? '') : undefined
      if (before !== undefined && deadlines.get(name) !== deadline) changedAt.set(name, clock.now())
      deadlines.set(name, deadline)
    },
    claim(now, before) {
      const { metadata, spec } = (now ?? before) as NodeClaim
      const lastsMs = parseNillableDuration(spec.expireAfter)
      if (now === undefined || lastsMs === undefined || metadata.deletionTimestamp !== undefined)
        dueAt.delete(metadata.name)
      else dueAt.set(metadata.name, Date.parse(metadata.creationTimestamp ?? '') + lastsMs)
    },
    minute() {
      for (const [name, due] of dueAt)
        if (clock.now() - due > 15 * minute + graceMs(name))
          violate('expiredInTime', `NodeClaim ${name} should have been deleted a quarter of an hour ago`)
    },
  }
}

export const poolOf = (claim: NodeClaim): string => claim.metadata.labels?.[labels.nodePool] ?? ''
