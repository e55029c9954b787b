export { Explanations } from './status/explanations.ts'
export { LoopTrigger } from './loop/triggers.ts'
export type { Autoscaler } from './loop/autoscaler.ts'
export { type AutoscalerParts, createAutoscaler } from './loop/create-autoscaler.ts'
export type {
  ClusterWriter,
  CounterName,
  EventSink,
  EventType,
  GaugeName,
  HistogramName,
  LoopErrorType,
  LoopView,
  Lookups,
  MetricLabels,
  MetricSink,
  NodeGroupIndex,
  NodeTemplate,
  PodController,
  ClusterCache,
} from './model.ts'
export {
  annotations,
  delayDeletionPrefix,
  deletionCandidateTaint,
  eventSource,
  toBeDeletedTaint,
} from './names.ts'
export { type AutoscalerOptions, defaultOptions } from './options/options.ts'
export { createClusterWriter, createDryRunWriter } from './process/cluster-writer.ts'
export { flagHelp } from './options/flag-help.ts'
export type { ProcessOptions } from './options/process-options.ts'
export { type OptionsAsked, readOptions } from './options/read-options.ts'
export { readSchedulerProfile, type SchedulerProfile } from './options/scheduler-profile.ts'
export { type DebuggingSnapshot, type SnapshotzRequests } from './status/snapshotz.ts'
export { type StatusWriter } from './status/status-config-map.ts'
export type { GroupReport, NodeCounts, RunningReport, StatusReport } from './status/status-report.ts'
export {
  type AutoscalerPlan,
  type KubernetesConnection,
  LeadershipLostError,
  runAutoscaler,
} from './process/autoscaler-process.ts'
export { autoscalerClusterRules, autoscalerRules, type AutoscalerRule } from './process/rights.ts'
export { encodeObject } from './process/grpc/encode-object.ts'
export { bestOptionsPath, grpcExpander } from './process/grpc/grpc-expander.ts'
export { callUnary } from './process/grpc/unary-call.ts'
export { type AutoscalerLogs, openLogs } from './process/logs.ts'
