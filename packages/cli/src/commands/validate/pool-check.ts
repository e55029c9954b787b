/** Finds fields of a NodePool that are accepted but have no effect or cannot work. */
import { type Budget, type NodePool, ownValue, parseDuration } from '@tenon/api'
import {
  type OverlayOutcome,
  renderOverlayConflict,
  renderOverlayProblems,
  unreadableBudget,
} from '@tenon/engine'
import {
  pauseAnnotations,
  poolAnnotationProblems,
  poolProblems,
  readPause,
  rolloutAnnotations,
  rolloutSettings,
} from '@tenon/operator/objects'
import type { PoolRules } from '@tenon/provider'
import type { Finding } from './problem.ts'

/** Feature gates that fields depend on. */
export interface Gates {
  readonly staticCapacity: boolean
  readonly nodeOverlay: boolean
}

/** @param written the pool as the user wrote it, `stored` with defaults. */
export function poolFindings(
  written: Partial<NodePool>,
  stored: NodePool,
  rules: PoolRules,
  gates: Gates,
): readonly Finding[] {
  const problems = poolProblems(stored, rules).map((each): Finding => ({ severity: 'error', ...each }))
  return [
    ...problems,
    ...budgetFindings(stored),
    ...annotationFindings(stored),
    ...ignoredFields(written, gates),
  ]
}

function budgetFindings({ spec }: NodePool): readonly Finding[] {
  return (spec.disruption?.budgets ?? []).flatMap((budget, i): readonly Finding[] => {
    const field = `spec.disruption.budgets[${i}]`
    const unreadable = unreadablePart(budget)
    if (unreadable !== undefined) {
      const message = `${unreadable} cannot be read, which stops every disruption of the pool`
      const fix =
        unreadable === 'schedule'
          ? 'write five cron fields (Sunday is 0), or @daily, without anything after it'
          : 'write a smaller number'
      return [{ severity: 'error', field: `${field}.${unreadable}`, message, fix }]
    }
    if (budget.reasons?.length === 0) {
      const fix = 'remove reasons to include all'
      return [{ severity: 'warning', field: `${field}.reasons`, message: 'an empty list has no effect', fix }]
    }
    if (budget.duration !== undefined && parseDuration(budget.duration) === 0)
      return [{ severity: 'warning', field: `${field}.duration`, message: 'the budget is never active' }]
    return []
  })
}

/** Annotations that cannot be read. */
function annotationFindings(pool: NodePool): readonly Finding[] {
  const reading = rolloutSettings(pool)
  const ofRollout = reading.kind === 'invalid' ? reading.problems : []
  const ofPauses = [pauseAnnotations.person, rolloutAnnotations.paused].flatMap((key) => {
    const read = readPause(ownValue(pool.metadata.annotations, key) ?? 'false')
    const field = `metadata.annotations["${key}"]`
    return read.kind === 'malformed' ? [{ field, message: read.problem }] : []
  })
  return [...ofRollout, ...ofPauses, ...poolAnnotationProblems(pool)].map(
    (each): Finding => ({ severity: 'error', ...each }),
  )
}

/** Which part cannot be parsed; each is tested with a valid value of the other. */
function unreadablePart(budget: Budget): 'schedule' | 'nodes' | undefined {
  if (unreadableBudget([{ ...budget, nodes: '1' }], 0) !== undefined) return 'schedule'
  return unreadableBudget([{ nodes: budget.nodes }], 0) === undefined ? undefined : 'nodes'
}

function ignoredFields({ spec, status }: Partial<NodePool>, gates: Gates): readonly Finding[] {
  const findings: Finding[] = []
  const ignored = (field: string, message: string, fix?: string): void => {
    findings.push({ severity: 'warning', field, message, ...(fix !== undefined && { fix }) })
  }
  if (status !== undefined) ignored('status', 'is ignored when an object is created', 'leave it out')
  if (spec?.replicas === undefined) return findings
  if (!gates.staticCapacity)
    ignored(
      'spec.replicas',
      'a static pool launches nothing while feature gate StaticCapacity is off',
      'start the controller with --feature-gates StaticCapacity=true',
    )
  for (const field of ['consolidateAfter', 'consolidationPolicy'] as const) {
    if (spec.disruption?.[field] !== undefined)
      ignored(`spec.disruption.${field}`, 'is ignored on a static pool')
  }
  return findings
}

/** Findings about an overlay that passed its schema. */
export function overlayFindings(outcome: OverlayOutcome | undefined, gates: Gates): readonly Finding[] {
  const findings: Finding[] = []
  if (!gates.nodeOverlay) {
    const fix = 'start the controller with --feature-gates NodeOverlay=true'
    findings.push({
      severity: 'warning',
      field: '',
      message: 'is ignored while feature gate NodeOverlay is off',
      fix,
    })
  }
  if (outcome?.kind === 'conflict')
    findings.push({ severity: 'error', field: 'spec.weight', message: renderOverlayConflict(outcome) })
  if (outcome?.kind === 'invalid') {
    for (const problem of outcome.problems) {
      const message = renderOverlayProblems([problem]).slice(`${problem.field}: `.length)
      findings.push({ severity: 'error', field: problem.field, message })
    }
  }
  return findings
}
