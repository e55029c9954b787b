/** Checks NodeOverlays against the NodePools of the same files. */
import { type OverlayOutcome, renderOverlayConflict, renderOverlayProblems } from '@tenon/engine'
import type { Gates } from './pool-check.ts'
import type { Finding } from './problem.ts'

/** Findings about an overlay that its schema admits. */
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
