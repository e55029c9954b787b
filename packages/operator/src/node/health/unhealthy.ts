/** Which nodes a provider's repair policies call unhealthy (lifecycle.md 11). */
import type { Node } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { RepairPolicy } from '@tenon/provider'

/** A condition that asks for a repair, and from when on. */
export interface Ailment {
  readonly conditionType: string
  /** When the condition has lasted longer than is tolerated, in Unix milliseconds. */
  readonly repairAtMs: number
}

/** What ails a node; of several conditions the one that is to be acted on first. */
export function ailmentOf(node: Node, policies: readonly RepairPolicy[]): Ailment | undefined {
  const ailments = (node.status?.conditions ?? []).flatMap(({ type, status, lastTransitionTime }) =>
    policies
      .filter((policy) => policy.conditionType === type && policy.conditionStatus === status)
      .map(
        ({ tolerationMs }): Ailment => ({
          conditionType: type,
          repairAtMs: (lastTransitionTime === undefined ? 0 : Date.parse(lastTransitionTime)) + tolerationMs,
        }),
      ),
  )
  return ailments.toSorted((a, b) => a.repairAtMs - b.repairAtMs)[0]
}

/** Whether a change of a Node may change its health; heartbeats do not. */
export function isHealthChange(change: Change<Node>): boolean {
  if (change.kind === 'deleted') return false
  if (change.kind === 'added') return true
  const before = change.old.status?.conditions ?? []
  const after = change.object.status?.conditions ?? []
  if (before.length !== after.length) return true
  return after.some((condition) => {
    const old = before.find(({ type }) => type === condition.type)
    return old?.status !== condition.status || old.lastTransitionTime !== condition.lastTransitionTime
  })
}

/** `MemoryPressure` as a label value of metrics: `memory_pressure`. */
export function snakeCase(conditionType: string): string {
  const words = conditionType.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g) ?? []
  return words.join('_').toLowerCase()
}
