/** Every family, save those of the runtime (`process_`, `nodejs_`, `go_`). */
import { clusterRows } from './cluster/cluster-rows.ts'
import { conditionRows } from './conditions/condition-rows.ts'
import { coreRows } from './core-rows.ts'
import { frameworkRows } from './framework/framework-rows.ts'
import type { MetricRow } from './rows.ts'

/** By which code, reference page and dashboards agree. */
export const metricTable: readonly MetricRow[] = [
  ...coreRows,
  ...clusterRows,
  ...conditionRows,
  ...frameworkRows,
]
