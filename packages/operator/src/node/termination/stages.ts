/** What a Node goes through before it may go: drain, volumes, instance (lifecycle.md 4.1, 4.5, 4.6). */
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { ConditionSet } from '@tenon/api'
import { deletesInstance } from '../../nodeclaim/lifecycle/finalize.ts'
import type { Departure } from './departure.ts'
import { isDrainable, planDrain } from './drain.ts'
import { drainEventMs, type DrainEvents } from './drain-events.ts'
import type { EvictionQueue } from './eviction-queue.ts'
import { podsOnNode } from '../../state/pods/pods.ts'
import { pendingVolumes } from './volumes.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Kubernetes } from '../../kubernetes.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes<'nodes' | 'persistentVolumeClaims' | 'volumeAttachments'>
  readonly state: Pick<ClusterState, 'podsOn'>
  readonly provider: Pick<CloudProvider, 'delete' | 'get' | 'ownsProviderID'>
  readonly evictions: Pick<EvictionQueue, 'add' | 'addForced'>
  readonly drainEvents: DrainEvents
  readonly clock: Clock
}

const pollMs = 1000
const instancePollMs = 5000
/** Pods may have been bound before the scheduler saw the taint. */
const leastDrainMs = 5000

/** How far a stage came. */
interface StageOutcome {
  /** Of the claim, to be stored; absent like it. */
  readonly conditions: ConditionSet | undefined
  /** Given while the stage is not through: when to look again. */
  readonly requeueMs?: number
}

/** One stage; a rejection means that the cloud or the API server did not do as asked. */
export type TerminationStage = (
  departure: Departure,
  conditions: ConditionSet | undefined,
  signal: AbortSignal,
) => Promise<StageOutcome> | StageOutcome

/** The stages, in order; each is looked at again in every pass. */
export function terminationStages(deps: Dependencies): readonly TerminationStage[] {
  return [
    (departure, conditions, signal) => drain(deps, departure, conditions, signal),
    (departure, conditions) => detachVolumes(deps, departure, conditions),
    (departure, conditions, signal) => endInstance(deps, departure, conditions, signal),
  ]
}

async function drain(
  { clock, drainEvents, evictions, kubernetes, state }: Dependencies,
  departure: Departure,
  before: ConditionSet | undefined,
  signal: AbortSignal,
): Promise<StageOutcome> {
  const now = clock.now()
  const { node, deadlineMs } = departure
  const { name } = node.metadata
  let plan = planDrain(state.podsOn(name), deadlineMs, now)
  const sinceMs = Date.parse(before?.get('Drained')?.lastTransitionTime ?? '')
  const isSettled = before === undefined || now - sinceMs >= leastDrainMs
  const twins = twinsOf(kubernetes.caches, departure)
  let holdsTwin = twins.some((twin) => planDrain(state.podsOn(twin), deadlineMs, now).waiting.length > 0)
  // The instance ends after this, with whatever the cache does not show.
  if (plan.waiting.length === 0 && !holdsTwin && isSettled && before?.isTrue('Drained') !== true) {
    const fresh = async (of: string) =>
      planDrain(await podsOnNode(kubernetes.client, of, signal), deadlineMs, now)
    plan = await fresh(name)
    for (const twin of twins) holdsTwin ||= (await fresh(twin)).waiting.length > 0
  }
  const draining = { type: 'Drained', status: 'Unknown', reason: 'Draining', message: 'Draining' } as const
  const conditions = before?.get('Drained') === undefined ? before?.set(draining, now) : before
  if (plan.waiting.length > 0) {
    evictions.addForced(plan.force, deadlineMs)
    evictions.add(plan.evict, deadlineMs)
    drainEvents.tell(departure, plan)
    // In time for the next pod that the deadline overtakes: it has no more than its grace period left.
    const forceMs = Math.max(1, plan.nextForceMs - now + 1)
    return { conditions, requeueMs: Math.min(pollMs, forceMs) }
  }
  if (holdsTwin) return { conditions, requeueMs: pollMs }
  if (conditions === undefined || conditions.isTrue('Drained')) return { conditions }
  if (!isSettled) return { conditions, requeueMs: pollMs }
  return { conditions: conditions.set({ type: 'Drained', status: 'True' }, now) }
}

/** Other Nodes of the same instance, such as one that its kubelet had under another name: it ends for their pods, too. */
function twinsOf({ nodes }: Pick<Caches, 'nodes'>, { claim, node }: Departure): readonly string[] {
  const providerID = claim?.status?.providerID ?? ''
  const all = providerID === '' ? [] : nodes.byIndex(indexes.byProviderId, providerID)
  return all.flatMap(({ metadata: { name } }) => (name === node.metadata.name ? [] : name))
}

function detachVolumes(
  { clock, kubernetes: { caches, events }, state }: Dependencies,
  { node, deadlineMs }: Departure,
  conditions: ConditionSet | undefined,
): StageOutcome {
  const now = clock.now()
  const type = 'VolumesDetached'
  const staying = state.podsOn(node.metadata.name).filter((pod) => !isDrainable(pod, now))
  const pending = pendingVolumes(caches, node.metadata.name, staying)
  if (pending.length === 0) return { conditions: conditions?.set({ type, status: 'True' }, now) }
  if (now > deadlineMs) {
    const reason = 'TerminationGracePeriodElapsed'
    return { conditions: conditions?.set({ type, status: 'False', reason, message: reason }, now) }
  }
  const rest = pending.length - 5
  const reason = 'AwaitingVolumeDetachment'
  events.record({
    object: node,
    type: 'Normal',
    reason,
    message: `Waiting for volumes to detach: ${pending.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`,
    dedupe: [node.metadata.name],
    dedupeTtlMs: drainEventMs,
  })
  return {
    conditions: conditions?.set({ type, status: 'Unknown', reason, message: reason }, now),
    requeueMs: pollMs,
  }
}

async function endInstance(
  deps: Dependencies,
  { claim }: Departure,
  conditions: ConditionSet | undefined,
  signal: AbortSignal,
): Promise<StageOutcome> {
  if (claim === undefined) return { conditions }
  const isGone = await deletesInstance(deps.provider, claim, signal)
  return {
    conditions: conditions?.set({ type: 'InstanceTerminating', status: 'True' }, deps.clock.now()),
    ...(!isGone && { requeueMs: instancePollMs }),
  }
}
