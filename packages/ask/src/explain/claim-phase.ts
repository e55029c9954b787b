/** The progress of a NodeClaim, and how long its next step usually takes (ask.md 2). */
import { conditionOf, isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import { stepOfClaim } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import type { Study } from '../study/study.ts'

type Step = 'Launched' | 'Registered' | 'Initialized'

/** The next step of a claim. */
export interface ClaimPhase {
  readonly waitsFor: Step
  /** The message of its condition, if any. */
  readonly message?: string
  readonly forSeconds: number
  /** Of the last hundred claims of the NodePool that took this step; absent if there are none. */
  readonly medianSeconds?: number
  /** When the controller gives up on the claim, RFC 3339; absent if never. */
  readonly until?: string
  readonly isOverdue: boolean
  /** What happens if the step does not complete. */
  readonly otherwise: string
}

/** The order of the steps: each with its predecessor. */
const before: Readonly<Record<Step, Step | undefined>> = {
  Launched: undefined,
  Registered: 'Launched',
  Initialized: 'Registered',
}
const counted = 100

/** @returns undefined if the claim has completed all steps. */
export function claimPhase(study: Study, claim: NodeClaim): ClaimPhase | undefined {
  const { settings, takenAtMs } = study.snapshot
  const step = stepOfClaim(claim, settings)
  if (step === undefined || claim.metadata.deletionTimestamp !== undefined) return undefined
  const { type, sinceMs, timeoutMs } = step
  const { message = '' } = conditionOf(claim, type) ?? {}
  const endMs = sinceMs + timeoutMs
  const medianSeconds = medianOf(study, claim.metadata.labels?.[labels.nodePool] ?? '', type)
  return {
    waitsFor: type,
    ...(message !== '' && { message }),
    forSeconds: Math.max(0, Math.round((takenAtMs - sinceMs) / 1000)),
    ...(medianSeconds !== undefined && { medianSeconds }),
    ...(Number.isFinite(endMs) && { until: rfc3339(endMs) }),
    isOverdue: takenAtMs >= endMs,
    otherwise: otherwiseText(type, Number.isFinite(endMs)),
  }
}

function otherwiseText(type: Step, isLimited: boolean): string {
  if (!isLimited) return 'It is waited for without a limit'
  const again = 'its pods are decided about again, and another node is launched for them'
  return type === 'Initialized'
    ? `Then the NodeClaim is deleted: ${again}, after a pause where nodes of the NodePool keep failing so`
    : `Then the NodeClaim is deleted: ${again}`
}

/** Uses existing claims and those in the journal. */
function medianOf({ operator, snapshot }: Study, nodePool: string, type: Step): number | undefined {
  const times = new Map<string, Steps>()
  for (const entry of snapshot.journal) {
    const step = entry.nodePool === nodePool ? journaled.get(entry.kind) : undefined
    const [name] = entry.nodeClaims
    if (step !== undefined && name !== undefined)
      times.set(name, { ...times.get(name), [step]: Date.parse(entry.at) })
  }
  for (const claim of operator.caches.nodeClaims.list())
    if (claim.metadata.labels?.[labels.nodePool] === nodePool) times.set(claim.metadata.name, stepsOf(claim))
  const taken = [...times.values()]
    .flatMap((steps) => {
      const [endMs, beginMs] = [steps[type], steps[before[type] ?? 'Created']]
      return endMs === undefined || beginMs === undefined ? [] : [{ endMs, tookMs: endMs - beginMs }]
    })
    .toSorted((a, b) => b.endMs - a.endMs)
    .slice(0, counted)
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b)
  const middle = taken[Math.floor(taken.length / 2)]
  return middle === undefined ? undefined : Math.max(0, Math.round(middle / 1000))
}

type Steps = Readonly<Partial<Record<Step | 'Created', number>>>

const journaled: ReadonlyMap<string, Step | 'Created'> = new Map([
  ['launch', 'Created'],
  ['launched', 'Launched'],
  ['registered', 'Registered'],
  ['initialized', 'Initialized'],
])

function stepsOf(claim: NodeClaim): Steps {
  const createdMs = Date.parse(claim.metadata.creationTimestamp ?? '')
  const steps = (Object.keys(before) as readonly Step[]).flatMap((type) => {
    const condition = isConditionTrue(claim, type) ? conditionOf(claim, type) : undefined
    return condition === undefined ? [] : [[type, Date.parse(condition.lastTransitionTime)] as const]
  })
  return { ...(!Number.isNaN(createdMs) && { Created: createdMs }), ...Object.fromEntries(steps) }
}
