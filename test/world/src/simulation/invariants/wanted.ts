/** What users have asked for holds: quotas, repair, surges, soft expiration, one zone at a time (quotas.md 1, wanted.md 2 to 6). */
import {
  annotations,
  autoscalingKinds,
  type Deployment,
  kinds,
  labels,
  matchesSelector,
  type Node,
  type NodeClaim,
  ownValue,
  parseDuration,
  parseNillableDuration,
  parseResources,
  type Pod,
} from '@tenon/api'
import { ailment, surgingApps } from '../workload/wanted.ts'
import { poolOf } from './instances.ts'
import { disruptionReasonOf } from './pods.ts'
import { histories } from './pools.ts'
import { annotation, clockErrorMs, type Invariant } from './scene.ts'

const minute = 60_000

const isTrue = (object: Node | NodeClaim | Pod, name: string): boolean =>
  ((object.status?.conditions ?? []) as readonly { readonly type: string; readonly status: string }[]).some(
    ({ type, status }) => type === name && status === 'True',
  )

const createdMs = ({ metadata }: NodeClaim): number => Date.parse(metadata.creationTimestamp ?? '')

/**
 * No Node comes that brings the capacity of all above a quota that has held since its NodeClaim was created. Instances
 * that nobody can know of do not count: twins, and those of claims whose finalizers a user removed.
 */
export const quotasKept: Invariant = ({ world, clock, blindMs, violate, claimByProviderId }) => {
  const { local } = world.cluster.server
  // Only stories with the kind `wanted` serve it.
  if (!local.definitions().some(({ plural }) => plural === autoscalingKinds.capacityQuota.plural)) return {}
  const limitsOf = histories<Readonly<Record<string, number>> | undefined>()
  const known = new Set<string>()
  const quotas = () => local.list(autoscalingKinds.capacityQuota)
  const follow = (): void => {
    const now = new Map(quotas().map(({ metadata, spec }) => [metadata.name, spec.limits.resources]))
    for (const name of now.keys()) {
      if (known.has(name)) continue
      known.add(name)
      limitsOf(name).set(0, undefined)
    }
    for (const name of known) {
      const resources = now.get(name)
      limitsOf(name).set(clock.monotonic(), resources && parseResources(resources))
    }
  }
  return {
    minute: follow,
    node(now, before) {
      const claim = claimByProviderId(now?.spec?.providerID ?? '')
      if (now === undefined || claim === undefined || !isCountedOtherwise(now, before)) return
      follow()
      const sinceMs = clock.monotonic() - (clock.now() - createdMs(claim)) - blindMs
      const nodes = new Map(world.nodes().map((node) => [node.spec?.providerID ?? '', node]))
      for (const { metadata, spec } of quotas()) {
        if (!matchesSelector(spec.selector ?? {}, now.metadata.labels)) continue
        const held = limitsOf(metadata.name).from(sinceMs)
        const counted = [...nodes].filter(
          ([id, node]) =>
            claimByProviderId(id) !== undefined && matchesSelector(spec.selector ?? {}, node.metadata.labels),
        )
        const capacities = counted.map(([, { status }]) => parseResources(status?.capacity))
        for (const resource of Object.keys(spec.limits.resources)) {
          const limits = held.map((each) => ownValue(each ?? {}, resource) ?? Number.POSITIVE_INFINITY)
          const used =
            resource === 'nodes'
              ? counted.length
              : capacities.reduce((sum, each) => sum + (ownValue(each, resource) ?? 0), 0)
          if (used > Math.max(...limits))
            violate(
              'quotasKept',
              `nodes have ${used} of ${resource}, CapacityQuota ${metadata.name} allows ${Math.max(...limits)}; last came ${now.metadata.name}`,
            )
        }
      }
    },
  }
}

function isCountedOtherwise(now: Node, before: Node | undefined): boolean {
  return (
    before === undefined ||
    now.metadata.labels !== before.metadata.labels ||
    now.status?.capacity !== before.status?.capacity
  )
}

const surgedFor = 'tenon.sh/surged-for'

/** A Deployment is restarted once for a drain, over restarts of the controller too. */
export const surgedOnce: Invariant = ({ world, violate }) => {
  /** The restart for which a Node's drain asked, by Deployment and Node. */
  const restarts = new Map<string, string>()
  return {
    apiWritten({ method, plural, namespace, name = '', request }) {
      if (method !== 'PATCH' || plural !== 'deployments') return
      const patch = JSON.parse(String(request.body)) as RestartPatch
      const found = world.cluster.server.local.get<Deployment>(kinds.deployment, namespace, name)
      const at = patch.spec?.template?.metadata?.annotations?.[restartedAt]
      const drain = patch.metadata?.annotations?.[surgedFor]?.split(',').at(-1)
      // Otherwise the server has refused it.
      if (at === undefined || drain === undefined || found === undefined) return
      if (ownValue(found.spec.template.metadata?.annotations, restartedAt) !== at) return
      const key = `${found.metadata.uid} ${drain}`
      const former = restarts.get(key)
      restarts.set(key, at)
      if (former !== undefined && former !== at)
        violate('surgedOnce', `Deployment ${name} is restarted again for the drain of Node ${drain}`)
    },
  }
}

const restartedAt = 'kubectl.kubernetes.io/restartedAt'

interface RestartPatch {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: {
    readonly template?: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } }
  }
}

/**
 * The controller does not take the only ready pod of a Deployment that surges, before the deadline of its node. It may
 * after a rollout that failed, or a restart that failed for five minutes.
 */
export const readyPodKept: Invariant = (scene) => {
  const { world, clock, blindMs, violate, nodeByName, claimByProviderId } = scene
  /** When Nodes began to be drained, and how many requests had failed then. */
  const drains = new Map<string, { readonly atMs: number; readonly failed: number }>()
  const isExcused = (pod: Pod, app: string): boolean => {
    const node = nodeByName(pod.spec.nodeName ?? '')
    const claim = claimByProviderId(node?.spec?.providerID ?? '')
    const deadline = Date.parse((claim && annotation(claim, annotations.terminationTimestamp)) ?? '')
    const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000
    if (clock.now() > deadline - graceMs - clockErrorMs) return true
    const { namespace } = pod.metadata
    const owner = world.cluster.server.local.get<Deployment>(kinds.deployment, namespace, app)
    const conditions = owner?.status?.conditions ?? []
    if (conditions.some(({ reason }) => reason === 'ProgressDeadlineExceeded')) return true
    const drain = drains.get(node?.metadata.name ?? '')
    return (
      drain !== undefined &&
      clock.monotonic() - drain.atMs > patienceMs - clockErrorMs &&
      scene.failedRequests() > drain.failed
    )
  }
  return {
    node(now, before) {
      const { name } = ((now ?? before) as Node).metadata
      if (now?.metadata.deletionTimestamp === undefined) drains.delete(name)
      else if (!drains.has(name))
        drains.set(name, { atMs: clock.monotonic(), failed: scene.failedRequests() })
    },
    apiWrite({ process, method, plural, subresource, namespace, name = '' }) {
      if (plural !== 'pods' || process.settings.surgeOnDrain === 'off') return
      if (method !== 'DELETE' && subresource !== 'eviction') return
      const pod = world.cluster.server.local.get<Pod>(kinds.pod, namespace, name)
      const app = pod?.metadata.labels?.['app'] ?? ''
      if (pod === undefined || !surgingApps.includes(app) || !serves(pod)) return
      if (
        world.pods().some((other) => other !== pod && other.metadata.labels?.['app'] === app && serves(other))
      )
        return
      const readyAt = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime
      // The controller may not know yet that the pod serves anybody.
      if (clock.now() - Date.parse(readyAt ?? '') < blindMs + clockErrorMs || scene.viewsMayBeWrong()) return
      if (isExcused(pod, app)) return
      violate('readyPodKept', `pod ${name}, the only ready one of Deployment ${app}, is to go`)
    },
  }
}

/** A restart that the API server cannot carry out is tried again for so long. */
const patienceMs = 5 * minute

const serves = (pod: Pod): boolean => pod.metadata.deletionTimestamp === undefined && isTrue(pod, 'Ready')

const repairStarted = 'tenon.sh/repair-started'
const rebootedAt = 'tenon.sh/rebooted-at'

/** The claim's node is being repaired. */
const isInRepair = (claim: NodeClaim): boolean =>
  disruptionReasonOf(claim) === 'Unhealthy' ||
  (claim.metadata.deletionTimestamp !== undefined && annotation(claim, repairStarted) !== undefined)

const zoneOf = ({ metadata }: Node): string | undefined => metadata.labels?.[labels.zone]

const isWell = (node: Node): boolean => isTrue(node, 'Ready') && !isTrue(node, ailment)

/**
 * Repairs keep to the budget of their NodePool, hold while many nodes of a zone or of the cluster have failed at once, and
 * spare nodes with a veto and those that are well.
 */
export const repairsBounded: Invariant = (scene) => {
  const { world, clock, blindMs, violate, nodeByProviderId } = scene
  const wishesOf = histories<{ readonly repair: string | undefined; readonly budget: string | undefined }>()
  const totals = histories<number>()
  /** Nodes of the cluster, and of each zone. */
  const sizes = histories<number>()
  const vetoedAt = new Map<string, number>()
  /** When Nodes turned unhealthy, and when they last were. */
  const illSince = new Map<string, number>()
  const lastIll = new Map<string, number>()
  const nodeOf = (claim: NodeClaim) => nodeByProviderId(claim.status?.providerID ?? '')
  // Nodes that go anyway say nothing about the others.
  const staying = () => world.nodes().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const inPool = (pool: string) => world.claims().filter((claim) => poolOf(claim) === pool)

  const begins = (claim: NodeClaim): void => {
    const pool = poolOf(claim)
    const { name } = claim.metadata
    const from = clock.monotonic() - 2 * blindMs - minute
    const wishes = wishesOf(pool).from(from)
    const node = nodeOf(claim)
    const vetoed = vetoedAt.get(node?.metadata.name ?? '')
    if (wishes.length > 0 && wishes.every(({ repair }) => repair === 'off'))
      violate('repairsBounded', `NodeClaim ${name} is repaired, and NodePool ${pool} says not to`)
    if (vetoed !== undefined && vetoed < from)
      violate('repairsBounded', `Node ${node?.metadata.name} is repaired in spite of its annotation`)
    const total = Math.max(inPool(pool).length, ...totals(pool).from(from - 2 * minute))
    const most = Math.max(0, ...wishes.map(({ budget }) => mostRepairs(budget, total)))
    const going = inPool(pool).filter(isInRepair).length
    if (wishes.length > 0 && going > most)
      violate('repairsBounded', `${going} nodes of NodePool ${pool} are repaired at once, ${most} may be`)
    // Others are counted as the caches show them.
    if (node !== undefined && !scene.viewsMayBeWrong()) judgeBrake(node, from)
  }

  /** Nobody repairs while many nodes of the cluster, or of the zone, have failed at once. */
  const judgeBrake = (node: Node, from: number): void => {
    const zone = zoneOf(node)
    judgeMass(node, { where: 'the cluster', nodes: staying(), most: 1 / 3, from })
    const inZone = staying().filter((each) => zoneOf(each) === zone)
    if (zone !== undefined) judgeMass(node, { where: `zone ${zone}`, nodes: inZone, most: 1 / 2, from })
  }

  const judgeMass = (
    { metadata: { name } }: Node,
    group: {
      readonly where: string
      readonly nodes: readonly Node[]
      readonly most: number
      readonly from: number
    },
  ): void => {
    const { where, nodes, most, from } = group
    const times = nodes.flatMap(({ metadata }) => illSince.get(metadata.name) ?? []).filter((at) => at < from)
    const together = (first: number) => times.filter((at) => at >= first && at - first < 9 * minute).length
    const failed = Math.max(...times.map(together))
    const total = Math.max(nodes.length, ...sizes(where).from(from - 2 * minute))
    if (failed < 3 || failed <= most * total || clock.monotonic() - Math.max(...times) >= 28 * minute) return
    const text = `Node ${name} is repaired while ${failed} of ${total} nodes of ${where} have failed at once`
    violate('repairsBounded', text)
  }

  return {
    pool(now) {
      if (now === undefined) return
      const [repair, budget] = ['repair', 'repair-budget'].map((key) => annotation(now, `tenon.sh/${key}`))
      wishesOf(now.metadata.name).set(clock.monotonic(), { repair, budget })
    },
    minute() {
      const pools = Map.groupBy(world.claims(), poolOf)
      for (const [pool, claims] of pools) totals(pool).set(clock.monotonic(), claims.length)
      sizes('the cluster').set(clock.monotonic(), staying().length)
      for (const [zone, nodes] of Map.groupBy(staying(), zoneOf))
        sizes(`zone ${zone}`).set(clock.monotonic(), nodes.length)
    },
    node(now, before) {
      const { name } = ((now ?? before) as Node).metadata
      if (now === undefined || annotation(now, 'tenon.sh/do-not-repair') !== 'true') vetoedAt.delete(name)
      else if (!vetoedAt.has(name)) vetoedAt.set(name, clock.monotonic())
      if (now === undefined || isWell(now)) {
        if (illSince.delete(name)) lastIll.set(name, clock.monotonic())
      } else if (!illSince.has(name) && now.metadata.labels?.[labels.initialized] === 'true')
        illSince.set(name, clock.monotonic())
    },
    claim(now, before) {
      if (now === undefined || before === undefined) return
      if (isInRepair(now) && !isInRepair(before)) begins(now)
      const [former, latest] = [before, now].map((each) => Date.parse(annotation(each, rebootedAt) ?? ''))
      if (Number(latest) > Number(former) && Number(latest) - Number(former) < 60 * minute - clockErrorMs)
        violate(
          'repairsBounded',
          `the instance of NodeClaim ${now.metadata.name} is rebooted twice in an hour`,
        )
    },
    apiWrite({ method, plural, name = '' }) {
      if (method !== 'DELETE' || plural !== 'nodeclaims') return
      const claim = scene.claimByName(name)
      const node = claim && nodeOf(claim)
      if (claim === undefined || node === undefined || claim.metadata.deletionTimestamp !== undefined) return
      if (disruptionReasonOf(claim) !== 'Unhealthy' || illSince.has(node.metadata.name)) return
      const wellMs = clock.monotonic() - (lastIll.get(node.metadata.name) ?? Number.NEGATIVE_INFINITY)
      if (wellMs > wellAgainMs + blindMs + clockErrorMs)
        violate('repairsBounded', `Node ${node.metadata.name} is repaired and has been well for ${wellMs} ms`)
    },
  }
}

/** A node that has flapped is replaced until it has been well for so long. */
const wellAgainMs = 5 * minute

/** How many nodes of a NodePool of this size may be repaired at once; without a budget only small ones have a bound. */
function mostRepairs(budget: string | undefined, total: number): number {
  const percent = /^(\d+)%$/.exec(budget ?? '')?.[1]
  if (percent !== undefined) return Math.ceil((Number(percent) * total) / 100)
  if (/^\d+$/.test(budget ?? '')) return Number(budget)
  return total < 5 ? 1 : Number.POSITIVE_INFINITY
}

/**
 * Nobody deletes a NodeClaim without a reason before its age: with jitter up to so much earlier, with soft expiration
 * only at the deadline.
 */
export const agesKept: Invariant = (scene) => {
  const { clock, blindMs, violate, nodeByProviderId } = scene
  const wishesOf = histories<Readonly<Record<'expiration' | 'deadline' | 'jitter', string | undefined>>>()
  return {
    pool(now) {
      // Nodes of static NodePools go when `replicas` is lowered.
      if (now === undefined || now.spec.replicas !== undefined) return
      const of = (key: string) => annotation(now, `tenon.sh/${key}`)
      const wishes = {
        expiration: of('expiration'),
        deadline: of('expiration-deadline'),
        jitter: of('expiration-jitter'),
      }
      wishesOf(now.metadata.name).set(clock.monotonic(), wishes)
    },
    apiWrite({ method, plural, name = '' }) {
      if (method !== 'DELETE' || plural !== 'nodeclaims') return
      const claim = scene.claimByName(name)
      const afterMs = parseNillableDuration(claim?.spec.expireAfter ?? 'Never')
      if (claim === undefined || claim.metadata.deletionTimestamp !== undefined || afterMs === undefined)
        return
      const node = nodeByProviderId(claim.status?.providerID ?? '')
      const isInUse = isTrue(claim, 'Initialized') && disruptionReasonOf(claim) === undefined
      // Others have taken its Node away, or it is not well.
      if (!isInUse || node === undefined || node.metadata.deletionTimestamp !== undefined || !isWell(node))
        return
      if (annotation(claim, repairStarted) !== undefined || scene.viewsMayBeWrong()) return
      const ages = wishesOf(poolOf(claim))
        .from(clock.monotonic() - 2 * blindMs)
        .map(({ expiration, deadline, jitter }) => {
          const soonest = afterMs * (1 - (fractionOf(jitter) ?? 0))
          return expiration === 'soft'
            ? soonest + (parseDuration(deadline ?? '') ?? Number.POSITIVE_INFINITY)
            : soonest
        })
      if (ages.length === 0) return
      const leastMs = Math.min(...ages)
      const ageMs = clock.now() - createdMs(claim)
      if (ageMs < leastMs - clockErrorMs)
        violate(
          'agesKept',
          `NodeClaim ${name} is deleted after ${ageMs} ms without a reason, ${leastMs} are its age`,
        )
    },
  }
}

function fractionOf(text: string | undefined): number | undefined {
  const percent = /^(\d+)%$/.exec(text ?? '')?.[1]
  return percent === undefined ? undefined : Number(percent) / 100
}

/** With sequential zones, voluntary disruption begins in no zone while another one of the NodePool is at work. */
export const oneZoneAtATime: Invariant = ({ world, clock, blindMs, violate }) => {
  const modes = histories<string | undefined>()
  /** When nodes were chosen, and by which process, by name of the claim. */
  const chosen = new Map<string, { readonly atMs: number; readonly by: string }>()
  let writer = ''
  const isChosen = (claim: NodeClaim): boolean =>
    ['Drifted', 'Underutilized', 'Empty'].includes(disruptionReasonOf(claim) ?? '')
  return {
    pool(now) {
      if (now !== undefined)
        modes(now.metadata.name).set(clock.monotonic(), annotation(now, 'tenon.sh/disrupt-zones'))
    },
    apiWrite({ process, plural }) {
      if (plural === 'nodeclaims') writer = process.name
    },
    claim(now, before) {
      const { name } = ((now ?? before) as NodeClaim).metadata
      if (now === undefined || !isChosen(now)) {
        chosen.delete(name)
        return
      }
      if (chosen.has(name)) return
      chosen.set(name, { atMs: clock.monotonic(), by: writer })
      const pool = poolOf(now)
      const from = clock.monotonic() - 2 * blindMs - minute
      const held = modes(pool).from(from)
      if (held.length === 0 || held.some((mode) => mode !== 'sequential')) return
      const zone = now.metadata.labels?.[labels.zone]
      const elsewhere = world.claims().find((claim) => {
        const { atMs, by } = chosen.get(claim.metadata.name) ?? { atMs: clock.monotonic(), by: '' }
        const isSeen = by === writer || atMs < clock.monotonic() - blindMs
        return poolOf(claim) === pool && isSeen && claim.metadata.labels?.[labels.zone] !== zone
      })
      if (elsewhere !== undefined)
        violate(
          'oneZoneAtATime',
          `NodeClaim ${name} of zone ${zone} goes while ${elsewhere.metadata.name} of zone ${elsewhere.metadata.labels?.[labels.zone]} does`,
        )
    },
  }
}
