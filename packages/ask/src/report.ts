/** A report on a cluster as it is. */
export { claimKeys, localClaims, safeToEvict } from './report/holds.ts'
export {
  type ObstacleItem,
  type Obstacle,
  type ObstacleKind,
  type MeasuredUsage,
} from './report/obstacles.ts'
export type { Plan } from './report/plan.ts'
export { withPriceList } from './report/prices.ts'
export {
  clusterReport,
  type ClusterReport,
  type ReportedDimension,
  reportedDimensions,
  type ReportFacts,
  type RequestedPart,
} from './report/report.ts'
export type { Risk, RiskItem, RiskKind } from './report/risks.ts'
export type { ShadowCase } from './report/shadow-books.ts'
export { type LeftPod, type ShadowComparison, ShadowReader } from './report/shadow.ts'
