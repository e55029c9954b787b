import { conditionOf, isConditionTrue, type NodePool, ownValue } from '@tenon/api'
import { pauseAnnotations, readPause } from '@tenon/operator/objects'
import { amountsOf, present } from './facts.ts'
import type { Totals } from './totals.ts'
import type { PoolRow, Share } from './view.ts'

type PoolBudgetSpec = NonNullable<NonNullable<NodePool['spec']['disruption']>['budgets']>[number]

export function poolRow(pool: NodePool, totals: Totals): PoolRow {
  const { name, creationTimestamp, labels = {} } = pool.metadata
  const { spec } = pool
  const ready = conditionOf(pool, 'Ready')
  return {
    id: name,
    name,
    ...present('nodeClass', spec.template.spec.nodeClassRef.name),
    ...present('weight', spec.weight),
    claims: totals.nodes + totals.pending,
    nodes: totals.nodes,
    drifted: totals.drifted,
    limits: limitsOf(pool),
    price: totals.price(),
    ready: ready?.status ?? 'Unknown',
    ...(ready?.status === 'False' && present('readyMessage', ready.message)),
    ...(isConditionTrue(pool, 'Paused') && { paused: messageOf(pool, 'Paused') }),
    ...present('pausedBy', pausedBy(pool)),
    ...(isConditionTrue(pool, 'RolloutHalted') && { halted: messageOf(pool, 'RolloutHalted') }),
    budgets: (spec.disruption?.budgets ?? []).map(budgetText),
    ...present('createdAt', creationTimestamp),
    labels,
  }
}

/** An annotation takes effect before the controller has set the condition. */
function pausedBy(pool: NodePool): PoolRow['pausedBy'] {
  const { annotations } = pool.metadata
  const isPaused = isConditionTrue(pool, 'Paused')
  const isOwn = Object.values(pauseAnnotations).some((key) => {
    const reading = readPause(ownValue(annotations, key) ?? 'false')
    // One with an end may be over.
    return reading.kind !== 'none' && (isPaused || reading.value.untilMs === undefined)
  })
  if (isOwn) return 'nodepool'
  return isPaused ? 'cluster' : undefined
}

function messageOf(pool: NodePool, type: string): string {
  const { message = '', reason = type } = conditionOf(pool, type) ?? {}
  return message === '' ? reason : message
}

function limitsOf({ spec, status }: NodePool): Readonly<Record<string, Share>> {
  const [limits, used] = [amountsOf(spec.limits), amountsOf(status?.resources)]
  const names = [...new Set(['cpu', 'memory', ...Object.keys(limits)])].toSorted()
  return Object.fromEntries(
    names.map((name): [string, Share] => [
      name,
      {
        ...present('used', ownValue(used, name)),
        ...present('allocatable', ownValue(limits, name)),
      },
    ]),
  )
}

/** Schedules are in UTC, and the text says so (console.md, trap 6). */
function budgetText({ nodes, reasons = [], schedule, duration }: PoolBudgetSpec): string {
  const of = reasons.length === 0 ? '' : ` (${reasons.join(', ')})`
  const when = schedule === undefined ? '' : ` at ${schedule} UTC for ${duration ?? ''}`
  return `${nodes}${of}${when}`
}
