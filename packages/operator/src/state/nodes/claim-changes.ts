/** Which changes of claims matter to whom. */
import type { Condition, NodeClaim } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { isSameValue } from '../same-value.ts'

/** Conditions that only disruption sets and reads. */
const ofDisruption: ReadonlySet<string> = new Set(['Consolidatable', 'Drifted'])

/**
 * Whether a change tells of more than pods that came or went and what disruption makes of that. On a busy
 * cluster, such changes are nearly all there are, and mean nothing for the life of a claim.
 */
export function isOfItsLife(change: Change<NodeClaim>): boolean {
  if (change.kind !== 'updated') return true
  let answer = answers.get(change)
  if (answer === undefined) {
    answer = saysMore(change)
    answers.set(change, answer)
  }
  return answer
}

/** Each change is asked about by several that follow claims. */
const answers = new WeakMap<Change<NodeClaim>, boolean>()

function saysMore({ object, old }: Change<NodeClaim> & { readonly kind: 'updated' }): boolean {
  return (
    !isSameValue(object.spec, old.spec) ||
    !isSameValue({ ...object.metadata, resourceVersion: '' }, { ...old.metadata, resourceVersion: '' }) ||
    !isSameValue(lastingOf(object), lastingOf(old))
  )
}

function lastingOf({ status }: NodeClaim): object | undefined {
  if (status === undefined) return undefined
  const { lastPodEventTime: _, conditions, ...rest } = status
  return { ...rest, conditions: Array.isArray(conditions) ? conditions.filter(isLasting) : conditions }
}

/** Conditions may be misshapen as anything that others write. */
function isLasting(condition: Partial<Condition> | null): boolean {
  return !ofDisruption.has(condition?.type ?? '')
}
