import type { Pod } from '@tenon/api'
import { conditionOf, containerStates } from '../objects/pods.ts'
import type { FailureRule, Job } from '../objects/workloads.ts'
import { parseIndexes } from './indexes.ts'

/** The consequence of a failed pod for its Job. */
type Failure =
  | { readonly kind: 'count' | 'ignore' | 'failIndex' }
  | { readonly kind: 'failJob'; readonly message: string }

/** The consequence of a failed pod by `podFailurePolicy`; the first matching rule decides. */
export function failureOf(job: Job, pod: Pod): Failure {
  for (const [index, rule] of (job.spec.podFailurePolicy?.rules ?? []).entries()) {
    const why = matchOf(rule, pod)
    if (why === undefined) continue
    switch (rule.action) {
      case 'FailJob':
        return { kind: 'failJob', message: `${why} matching FailJob rule at index ${index}` }
      case 'FailIndex':
        return { kind: 'failIndex' }
      case 'Ignore':
        return { kind: 'ignore' }
      case 'Count':
        return { kind: 'count' }
    }
  }
  return { kind: 'count' }
}

function matchOf({ onExitCodes, onPodConditions }: FailureRule, pod: Pod): string | undefined {
  const name = `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`
  if (onExitCodes !== undefined) {
    const { containerName, operator, values } = onExitCodes
    for (const { name: container, state } of containerStates(pod)) {
      const code = state?.terminated?.exitCode ?? 0
      if (code === 0 || (containerName !== undefined && containerName !== container)) continue
      if (values.includes(code) === (operator === 'In'))
        return `Container ${container ?? ''} for pod ${name} failed with exit code ${code}`
    }
    return undefined
  }
  const met = (onPodConditions ?? []).find(
    ({ type, status = 'True' }) => conditionOf(pod, type)?.status === status,
  )
  return met === undefined ? undefined : `Pod ${name} has condition ${met.type}`
}

/** The first rule of `successPolicy` that the completed indexes meet. */
export function successRuleOf(job: Job, completed: ReadonlySet<number>): number | undefined {
  const { successPolicy, completions = 0 } = job.spec
  const at = (successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    const named =
      succeededIndexes === undefined ? undefined : [...parseIndexes(succeededIndexes, completions)]
    const done = named === undefined ? completed.size : named.filter((index) => completed.has(index)).length
    return done >= (succeededCount ?? named?.length ?? completions)
  })
  return at < 0 ? undefined : at
}
