/** Conditions after all faults have stopped: every pod runs, nothing is leaked, nothing changes. */
import {
  karpenterKinds,
  kinds,
  matchesSelector,
  type Node,
  type NodeClaim,
  ownValue,
  type Pod,
  parseNillableDuration,
} from '@tenon/api'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import { lacksMembers } from './gangs.ts'
import { unsatisfiableLabel } from '../workload/workload-context.ts'

const isOver = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
const isLeaving = (object: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
  object.metadata.deletionTimestamp !== undefined

/** Descriptions of what is wrong; empty if nothing is. */
export function unrest(world: World, cloud: WorldCloud): readonly string[] {
  const pods = world.pods()
  const claims = world.claims()
  const all = world.nodes()
  const nodes = all.filter((node) => !cloud.isForeign(node))
  const foreign = new Set(all.filter((node) => cloud.isForeign(node)).map(({ metadata }) => metadata.name))
  const instances = cloud.instances()
  const problems: string[] = []
  const isHeldBack = lacksMembers(world)
  const waiting = pods.filter(
    (pod) =>
      !isOver(pod) &&
      pod.metadata.labels?.[unsatisfiableLabel] === undefined &&
      !foreign.has(pod.spec.nodeName ?? '') &&
      !isRunning(pod) &&
      !isHeldBack(pod),
  )
  if (waiting.length > 0) problems.push(`${waiting.length} pod(s) do not run: ${some(waiting)}`)
  const claimed = new Set(claims.map(({ status }) => status?.providerID ?? ''))
  const unowned = instances.filter(({ providerId }) => !claimed.has(providerId))
  if (unowned.length > 0)
    problems.push(
      `${unowned.length} instance(s) without a NodeClaim: ${unowned.map(({ id }) => id).join(', ')}`,
    )
  const alive = new Set(instances.map(({ providerId }) => providerId))
  const hollow = claims.filter(({ status }) => !alive.has(status?.providerID ?? ''))
  if (hollow.length > 0) problems.push(`${hollow.length} NodeClaim(s) without an instance: ${some(hollow)}`)
  const lost = nodes.filter((node) => !alive.has(node.spec?.providerID ?? ''))
  if (lost.length > 0) problems.push(`${lost.length} Node(s) without an instance: ${some(lost)}`)
  const held = new Set(
    pods.filter((pod) => !isOver(pod) && mayHold(world, pod)).map(({ spec }) => spec.nodeName ?? ''),
  )
  const stuck = claims.filter((claim) => isLeaving(claim) && !held.has(claim.status?.nodeName ?? ''))
  if (stuck.length > 0) problems.push(`${stuck.length} NodeClaim(s) still being deleted: ${some(stuck)}`)
  const unready = claims.filter((claim) => !isLeaving(claim) && !isInitialized(claim))
  if (unready.length > 0) problems.push(`${unready.length} NodeClaim(s) not initialized: ${some(unready)}`)
  const bare = claims.filter((claim) => isInitialized(claim) && !hasLabels(claim, all))
  if (bare.length > 0) problems.push(`${bare.length} NodeClaim(s) whose Node lacks labels: ${some(bare)}`)
  return [...problems, ...cloud.leftovers(held)]
}

/** Whether the Node has the labels that kubelets may not set, and everything else of the claim's NodePool. */
function hasLabels({ metadata, status }: NodeClaim, nodes: readonly Node[]): boolean {
  const node = nodes.find((each) => each.metadata.name === status?.nodeName)
  return Object.entries(metadata.labels ?? {}).every(
    ([key, value]) => node === undefined || ownValue(node.metadata.labels, key) === value,
  )
}

/** Instances are no longer launched or removed if this stays the same. */
export function fleetOf(world: World): string {
  return world
    .claims()
    .map(({ metadata }) => `${metadata.uid}${metadata.deletionTimestamp === undefined ? '' : '-'}`)
    .join(' ')
}

/**
 * The maximum number of launches that expiration may cause in this time: one per expired instance, and one per
 * node for its pods.
 */
export function launchesOfAge(world: World, ms: number): number {
  // With jitter, some expire after little more than half of their age (wanted.md 4).
  const isUneven = world.cluster.server.local
    .list(karpenterKinds.nodePool)
    .some(({ metadata }) => metadata.annotations?.['tenon.sh/expiration-jitter'] !== undefined)
  const lives = world.claims().map(({ spec }) => {
    const lastsMs = parseNillableDuration(spec.expireAfter)
    return lastsMs === undefined || !isUneven ? lastsMs : 0.6 * lastsMs
  })
  return lives.reduce((sum: number, lastsMs) => sum + (lastsMs === undefined ? 0 : (2 * ms) / lastsMs), 0)
}

const isRunning = (pod: Pod): boolean =>
  pod.status?.phase === 'Running' &&
  pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true &&
  !isLeaving(pod)

const isInitialized = ({ status }: NodeClaim): boolean =>
  status?.conditions?.some((each) => each.type === 'Initialized' && each.status === 'True') === true

/**
 * Whether a pod can block a drain without a deadline: it is protected, or its budget allows no disruption even while all
 * its pods are healthy.
 */
function mayHold(world: World, { metadata }: Pod): boolean {
  if (metadata.annotations?.['karpenter.sh/do-not-disrupt'] !== undefined) return true
  if (metadata.annotations?.['tenon.sh/disruption-windows'] !== undefined) return true
  if (metadata.labels?.['app'] === 'guarded') return true
  return world.cluster.server.local
    .list(kinds.podDisruptionBudget, { namespace: metadata.namespace ?? '' })
    .some(
      ({ spec, status }) =>
        status?.disruptionsAllowed === 0 &&
        (status.currentHealthy ?? 0) >= (status.expectedPods ?? 0) &&
        matchesSelector(spec.selector, metadata.labels ?? {}),
    )
}

function some(objects: readonly { readonly metadata: { readonly name: string } }[]): string {
  const names = objects.slice(0, 5).map(({ metadata }) => metadata.name)
  return names.join(', ') + (objects.length > 5 ? ', …' : '')
}
