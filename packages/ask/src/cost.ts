/** Costs of nodes and workloads. This entry point loads no cluster state. */
export { NewEntries } from './cost/new-entries.ts'
export {
  type CostDimension,
  type CostGroup,
  costDimensions,
  costReport,
  type CostReport,
  CostSums,
  hoursPerMonth,
} from './cost/cost.ts'
export { ofKind, type PricedInstance, pricedInstances, PriceList } from './cost/priced.ts'
export { roundedParts } from './cost/rounding.ts'
export {
  type SpendDimension,
  spendDimensions,
  type SpendGroup,
  SpendLedger,
  type Spent,
} from './cost/spend-ledger.ts'
export { type SpentGroup, spentReport, type SpentReport } from './cost/spent.ts'
