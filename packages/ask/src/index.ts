export { readSnapshot, writeSnapshot } from './snapshot/file.ts'
export {
  readSnapshotText,
  snapshotLines,
  SnapshotReader,
  type ReadSnapshot,
  type SnapshotProblem,
} from './snapshot/lines.ts'
export type {
  Snapshot,
  SnapshotCatalogue,
  SnapshotCloud,
  SnapshotOrigin,
} from './snapshot/snapshot.ts'
export { type SnapshotSource, type TakenCatalogues, takeSnapshot } from './snapshot/take.ts'
export { Study } from './study/study.ts'
export type { BilledHour } from './play/bill.ts'
export type { Catalogue } from './play/catalogue.ts'
export type { PlayChange, PlayOptions, PlayTimes, TimedChange } from './play/play.ts'
export type { SnapshotPlayOptions, SnapshotPlayReport } from './play/play-snapshot.ts'
export type { PlayReport } from './play/report.ts'
export type { Durations } from './play/tally.ts'
export {
  explainPending,
  PendingExplainer,
  type PendingExplanation,
  type PoolAnswer,
} from './explain/pending.ts'
export type { Misses, NearestMiss } from './misses/find.ts'
export { type ObjectPatch, patchCommand, patchOf } from './misses/patch.ts'
export type { TraceEnd } from './trace/blocks.ts'
export { Recorder, type RecorderDependencies, type RecorderOptions } from './trace/recorder.ts'
export { type Gap, type Recording, type RecordedFigures, recordingOf } from './trace/recording.ts'
export type { TraceRecord } from './trace/records.ts'
export type { ReplayAssumption, ReplayReport, ReplayVariant } from './trace/replay.ts'
export { type ReadTrace, readTraceFile, TraceFile, type TraceSink } from './trace/trace-file.ts'
export { type TraceState, traceStateAfter } from './trace/trace-state.ts'
export { typesOfNodes } from './snapshot/types-of-nodes.ts'
export { CatalogueProvider } from './study/catalogue-provider.ts'
export { redacted, Redactor } from './snapshot/redact.ts'
export {
  type ChangedSnapshot,
  changedSnapshot,
  type ObjectName,
  type SnapshotChange,
} from './simulate/changes.ts'
export {
  type AddedNodes,
  type DriftBudget,
  type LeavingNode,
  simulate,
  type SimulatedPrice,
  type Simulation,
} from './simulate/simulate.ts'
export type { Case, CaseExpectations, CaseFailure, CaseStep } from './cases/case.ts'
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
export { ownerOf, type Owner } from './cost/owner.ts'
export { roundedParts } from './cost/rounding.ts'
export { type SpentGroup, spentReport, type SpentReport } from './cost/spent.ts'
export type { AsOf } from './explain/as-of.ts'
export type { ClaimPhase } from './explain/claim-phase.ts'
export { type ExplainedPod, gathered, type PodGroup } from './explain/gathered.ts'
export { explainNode, type NodeExplanation, type NodeNameKind } from './explain/node.ts'
export { explainNodePool, type NodePoolExplanation, type PoolBudget } from './explain/node-pool.ts'
export { PodExplainer, type PodExplanation } from './explain/pod.ts'
export { explainRequest, type RequestExplanation, requestsOf } from './explain/request.ts'
export { podGroupApis, PodGroupExplainer } from './explain/pod-group.ts'
export {
  nodeDocument,
  nodePoolDocument,
  podDocument,
  podGroupDocument,
  type PrintedEntry,
  requestDocument,
} from './explain/documents.ts'
export {
  budgetText,
  groupsText,
  nodePoolText,
  nodeText,
  podGroupText,
  podText,
  requestText,
  shownMisses,
} from './explain/text.ts'
