/** What objects, settings and entries of the journal mean; no state of a cluster is loaded with it. */
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
  resumedKeys,
} from './state/pause.ts'
export { nameProblem, type PoolProblem, poolProblems } from './state/nodepools/pool-problems.ts'
export type {
  JournalEntry,
  JournalInstance,
  JournalKind,
  JournalNote,
  JournalPods,
  JournalPrices,
  JournalShare,
  JournalSpend,
  JournalWaiting,
  JournalWorkload,
} from './journal/entry.ts'
export { entryFrom, lineOf } from './journal/entry.ts'
export { nodeOffering } from './disruption/catalogue.ts'
export { priceShares } from './extensions/capacitybuffer/figures.ts'
export { balanceCost } from './cloud/zone-balance.ts'
export { poolAnnotationProblems, poolWishes } from './state/nodepools/pool-annotations.ts'
export { ownCost } from './extensions/deletioncost/own-cost.ts'
export { withoutNulls } from './state/readable.ts'
export { surgeAnnotationProblem } from './state/pods/surging-pods.ts'
export { scheduleAnnotation } from './extensions/capacitybuffer/schedule.ts'
export { windowsProblem } from './state/pods/disruption-windows.ts'
export { readRecord, type RolloutRecord, type Watched } from './state/nodepools/rollout-settings.ts'
export { canaryCount, rolloutAnnotations, rolloutSettings } from './state/nodepools/rollout-settings.ts'
export {
  budgetsOf,
  doNotDisrupt,
  isActive,
  isDaemonPod,
  isHeldByBudget,
  isMirrorPod,
  isPausedByBudget,
  isReschedulable,
  isProvisionable,
  keyOf,
  windowsAnnotation,
} from './state/pods/pods.ts'
export { missingGroupText } from './state/pods/group-of-pod.ts'
export { workloadOf } from './state/pods/workloads.ts'
export { type Step, stepOfClaim } from './nodeclaim/lifecycle/liveness.ts'
export { type DaySavings, savingsByDay } from './journal/savings.ts'
export { EntrySelector, type JournalSelection } from './journal/entry.ts'
export { emptyMemory, type OperatorMemory } from './questions/memory.ts'
export { defaultSettings, policyOf, schedulerSettingsOf, type Settings } from './settings.ts'
