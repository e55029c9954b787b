export {
  Brake,
  brakeKeys,
  brakeName,
  type Pause,
  pauseAnnotations,
  pauseSentence,
} from './state/pause.ts'
export {
  type Included,
  includable,
  type PauseReading,
  pauseText,
  type PauseValue,
  readPause,
} from './state/pause-value.ts'
export { nameProblem, poolProblems } from './state/nodepools/pool-problems.ts'
export { type DecisionOptions, type SchedulingDecider } from './decide/decider.ts'
export { InlineDecider } from './decide/inline-decider.ts'
export { ThreadDecider, type ThreadDeciderOptions } from './decide/thread-decider.ts'
export type { JournalEntry, JournalKind, JournalNote, JournalPods, JournalPrices } from './journal/entry.ts'
export { podsNoted } from './journal/entry.ts'
export { entryFrom, lineOf } from './journal/entry-line.ts'
export { Journal } from './journal/journal.ts'
export type { DecisionCause, NodeDecision, NodeObstacle } from './disruption/answers.ts'
export { staticDrift } from './nodeclaim/disruption/disruption-conditions.ts'
export { nodePrice } from './disruption/catalogue.ts'
export { priceShares } from './state/price-shares.ts'
export { addProcessMetrics } from './metrics/framework/framework-process.ts'
export type { BuildInfo } from './metrics/metrics.ts'
export { metricTable } from './metrics/table.ts'
export { formerTemplates, type FormerTemplate } from './nodepool/rollout/history.ts'
export { readRecord, type RolloutRecord, type Watched } from './state/nodepools/rollout-record.ts'
export { canaryCount, rolloutAnnotations, rolloutSettings } from './state/nodepools/rollout-settings.ts'
export { type ClaimPrices, Operator, type OperatorDependencies } from './operator.ts'
export { emptyMemory, type OperatorMemory } from './questions/memory.ts'
export type { Saving } from './questions/node-examination.ts'
export type { NodeAnswer } from './questions/node-questions.ts'
export type { BudgetAnswer, PoolCatalogue } from './questions/pool-questions.ts'
export type { PendingDecision, Questions } from './questions/questions.ts'
export type { UnreadyPool } from './provisioning/input/eligible-pools.ts'
export { metricsHandler, type ProbeOptions, probesHandler, scrapeHandler } from './probes/probes.ts'
export { crdProblem } from './probes/crd.ts'
export { brakeRights, clusterRights, type CoreRule, leaseRights, type RightsSetting } from './rights.ts'
export {
  budgetsOf,
  doNotDisrupt,
  isDaemonPod,
  isMirrorPod,
  isReschedulable,
  isProvisionable,
  keyOf,
} from './state/pods/pods.ts'
export { missingGroupText } from './state/pods/group-of-pod.ts'
export { workloadOf } from './state/pods/workloads.ts'
export { type Step, stepOfClaim } from './nodeclaim/lifecycle/deadlines.ts'
export { defaultSettings, defaultSpreadOf, type Settings } from './settings.ts'
export { noEvents } from './extensions/observe/fences.ts'
export { journalPage } from './journal/journal-page.ts'
export { type DaySavings, savingsByDay } from './journal/savings.ts'
export { EntrySelector, type JournalSelection } from './journal/selection.ts'
