/** One scheduling pass: gathers the input, decides, reports, and launches. */
import { isRequestPod, type Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import { type Clock, inSlices, type Logger, type Slicing, traced, type Tracer } from '@tenon/runtime'
import type { PassDecider } from '../decide/decider.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { NodeEvidenceJudge } from '../node/evidence/judge.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { Caches } from '../state/caches.ts'
import { DecisionPlan, nominateNodes } from './decision-plan.ts'
import type { Launcher, LaunchOutcome } from './launcher.ts'
import type { RefusedClaims } from './refused-claims.ts'
import type { GatheredInput, SchedulingInputs } from './input/scheduling-input.ts'
import type { SchedulingReport } from './scheduling-report.ts'
import type { RoomOutcome, RoomReport } from './room-outcome.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<
    ClusterState,
    'nominate' | 'plans' | 'podDecisions' | 'podGroups' | 'recentlyFilledNodes' | 'requests'
  >
  readonly settings: Pick<Settings, 'batchMaxMs' | 'preferences'>
  readonly logger: Logger
  /** Undefined in compatibility mode: no node evidence is kept. */
  readonly judge: Pick<NodeEvidenceJudge, 'decided' | 'run'> | undefined
  readonly inputs: SchedulingInputs
  readonly refused: RefusedClaims
  readonly decider: PassDecider
  readonly report: SchedulingReport
  /** For CapacityBuffers and ProvisioningRequests, if they are served. */
  readonly roomReports: readonly RoomReport[]
  readonly placementGate: PlacementGate
  readonly launcher: Launcher
  readonly metrics: Pick<Metrics, 'schedulingDuration'>
  readonly slicing: Slicing & { readonly clock: Clock }
  readonly tracer: Tracer | undefined
}

/** A decision about real pods, and its input without placeholder pods. */
interface Decided {
  readonly input: GatheredInput
  readonly result: SchedulingResult
}

export class SchedulingPass {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<LaunchOutcome> {
    const { judge, launcher, placementGate, report, settings, slicing, state, tracer } = this.#deps
    // Whether kube-scheduler follows nominations.
    await placementGate.settled()
    const decided = await this.#measured(async () => {
      await judge?.run(signal)
      return await this.#decide(signal)
    })
    if (decided === undefined) return 'done'
    const { input, result } = decided
    judge?.decided(result)
    nominateNodes(state, input, result, Math.max(2 * settings.batchMaxMs, 10_000))
    const plan = await DecisionPlan.of(this.#deps, input, result)
    await inSlices(report.outcome(input, result), slicing)
    const placement = input.policy.improvement === 'planned' ? 'planned' : 'free'
    const launch = () => launcher.create(result, { plan, placement }, signal)
    const nodeClaims = result.claims.length
    if (nodeClaims === 0) return await launch()
    return await traced(tracer, 'create', { attributes: { 'tenon.nodeclaims': nodeClaims } }, launch)
  }

  /** Passes without a decision are measured, too (operations.md 9.1). */
  async #measured<T>(run: () => Promise<T>): Promise<T> {
    const { metrics, slicing } = this.#deps
    const start = slicing.clock.monotonic()
    try {
      return await run()
    } finally {
      const seconds = (slicing.clock.monotonic() - start) / 1000
      metrics.schedulingDuration.observe({ controller: 'provisioner' }, seconds)
    }
  }

  /** @returns undefined when there is nothing to decide about real pods, or no pool that could launch anything. */
  async #decide(signal: AbortSignal): Promise<Decided | undefined> {
    const { inputs, refused, report, slicing, tracer } = this.#deps
    const start = slicing.clock.monotonic()
    const all = refused.inTurn(await traced(tracer, 'gather', {}, () => inputs.forPending(signal)))
    const [input, roomPods] = withoutRoom(all)
    report.ignored(input.ignored)
    const pods = [...input.pods, ...input.refused.map(({ pod }) => pod)]
    if (pods.length === 0) report.nothingToDo()
    if (pods.length + roomPods.length === 0) {
      await this.#reportRoom({ pods: roomPods }, signal)
      return undefined
    }
    if (!input.hasEligiblePool) {
      await this.#withoutPools(pods)
      // Room on existing nodes is found without NodePools.
      const requested = onlyRequests(all)
      const room =
        requested.pods.length === 0
          ? { pods: roomPods }
          : roomOf(requested, await this.#result(requested, signal), roomPods)
      await this.#reportRoom(room, signal)
      return undefined
    }
    warnOfPreferences(this.#deps, slicing.clock.now(), input.pods)
    const result = await this.#result(all, signal)
    await inSlices(report.pendingZones(input, result), slicing)
    if (pods.length > 0) report.decided(input.pods, slicing.clock.monotonic() - start)
    await this.#reportRoom(roomOf(all, result, roomPods), signal)
    return { input, result }
  }

  async #result(input: GatheredInput, signal: AbortSignal): Promise<SchedulingResult> {
    const { decider, tracer } = this.#deps
    const attributes = { 'tenon.pods': input.pods.length }
    const result = await traced(tracer, 'decide', { attributes }, () => decider.decide(input, signal))
    signal.throwIfAborted()
    return result
  }

  async #withoutPools(pods: readonly Pod[]): Promise<void> {
    const { inputs, report, slicing } = this.#deps
    const unready = inputs.unreadyPools()
    await inSlices(report.withoutPools(pods, unready), slicing)
    const waiting = unready.map(({ nodePool, because }) => `${nodePool}: ${because}`)
    if (pods.length > 0) report.noPools(waiting.toSorted())
  }

  async #reportRoom(room: RoomOutcome, signal: AbortSignal): Promise<void> {
    for (const report of this.#deps.roomReports) await report.report(room, signal)
  }
}

/** Whether a pod is a placeholder of a buffer or request. */
function isPlaceholder({ origins }: Pick<GatheredInput, 'origins'>, { metadata }: Pod): boolean {
  const origin = origins?.get(metadata.uid ?? '')
  return origin === 'buffer' || origin === 'request' || origin === 'check'
}

/** Splits placeholder pods (buffers, requests) from real ones: they get no events. */
function withoutRoom(input: GatheredInput): readonly [input: GatheredInput, roomPods: readonly Pod[]] {
  const { pods, refused } = input
  const isReal = (pod: Pod) => !isPlaceholder(input, pod)
  const roomPods = [...pods, ...refused.map(({ pod }) => pod)].filter((pod) => !isReal(pod))
  if (roomPods.length === 0) return [input, []]
  return [
    { ...input, pods: pods.filter(isReal), refused: refused.filter(({ pod }) => isReal(pod)) },
    roomPods,
  ]
}

function onlyRequests(input: GatheredInput): GatheredInput {
  const pods = input.pods.filter(isRequestPod)
  const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ''))
  return {
    ...input,
    pods,
    podGroups: (input.podGroups ?? []).filter(({ members }) => members.every((uid) => uids.has(uid))),
  }
}

function roomOf(input: GatheredInput, result: SchedulingResult, pods: readonly Pod[]): RoomOutcome {
  const refused = input.refused.flatMap(({ pod }) => (isPlaceholder(input, pod) ? [pod] : []))
  return { pods, decided: { result, stateNodes: input.stateNodes, refused } }
}

const warningPauseMs = 24 * 3_600_000

/** Preferences about other pods can cost nodes, which users may not expect. */
function warnOfPreferences(
  { logger, settings, state }: Pick<Dependencies, 'logger' | 'settings' | 'state'>,
  nowMs: number,
  pods: readonly Pod[],
): void {
  if (settings.preferences !== 'Respect') return
  for (const pod of pods) {
    const preferences = costlyPreferences(pod)
    if (preferences.length === 0) continue
    if (!state.podDecisions.mayWarn(pod.metadata.uid ?? '', nowMs, warningPauseMs)) continue
    logger.info('pod has preferences that can keep nodes from being consolidated', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      preferences: preferences.join(', '),
    })
  }
}

function costlyPreferences({ spec }: Pod): readonly string[] {
  const preferences: string[] = []
  if ((spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).length > 0)
    preferences.push('preferred pod anti-affinity')
  if ((spec.topologySpreadConstraints ?? []).some((c) => c.whenUnsatisfiable === 'ScheduleAnyway'))
    preferences.push('topology spread with ScheduleAnyway')
  return preferences
}
