/** Builds what Tenon adds to the repair of nodes; nothing in the compatibility mode, or where nodes are not repaired. */
import { RepairReport } from '../extensions/repair/report.ts'
import { RepairRules } from '../extensions/repair/rules.ts'
import { policyOf } from '../settings.ts'
import type { Assembly } from './parts.ts'

export interface Repairs {
  readonly rules: RepairRules
  readonly report: RepairReport
}

export function repairsNodes({ provider, settings }: Pick<Assembly, 'provider' | 'settings'>): boolean {
  return settings.featureGates.nodeRepair && provider.repairPolicies.length > 0
}

export function repairsOf(parts: Assembly): Repairs | undefined {
  if (!repairsNodes(parts) || !policyOf(parts.settings).plansRepairs) return undefined
  return { rules: new RepairRules(parts), report: new RepairReport(parts) }
}
