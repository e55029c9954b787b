export * from './objects.ts'
export * from './questions.ts'
export { InlineDecider } from './decide/inline-decider.ts'
export { ThreadDecider, type ThreadDeciderOptions } from './decide/thread-decider.ts'
export { Journal } from './journal/journal.ts'
export {
  addMemoryLimits,
  addProcessMetrics,
  type MemoryLimit,
} from './metrics/framework/framework-process.ts'
export type { BuildInfo } from './metrics/metrics.ts'
export { metricTable, reduceDetail } from './metrics/metrics.ts'
export { formerTemplates, type FormerTemplate } from './nodepool/template-history.ts'
export { Operator, type OperatorDependencies } from './operator.ts'
export { metricsHandler, type ProbeOptions, probesHandler, scrapeHandler } from './probes/probes.ts'
export { crdProblem } from './probes/probes.ts'
export { brakeRights, clusterRights, type CoreRule, leaseRights, type RightsSetting } from './rights.ts'
export { latestForeignWrite, writeText } from './extensions/beside/foreign-writes.ts'
export { noEvents } from './extensions/observe/fences.ts'
export { journalPage } from './journal/journal-page.ts'
