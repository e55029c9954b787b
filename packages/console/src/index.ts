export { ConsoleModel } from './model/model.ts'
export type { SourceEvent, ToldReason } from './model/event.ts'
export type {
  Absent,
  Amounts,
  ClaimRow,
  ConsoleResource,
  ConsoleView,
  DecisionRow,
  Header,
  NextAction,
  NodeRow,
  OfferingRow,
  PendingPodRow,
  PendingReason,
  PodCounts,
  PoolRow,
  PriceSum,
  Problem,
  Share,
  TableName,
  TableRows,
  TenonHeader,
  ViewChange,
  Why,
} from './model/view.ts'
export type {
  ConsoleFacts,
  FieldHint,
  ReadManifests,
  ReplayAnswer,
  ReplayedVariant,
} from './answers/facts.ts'
export type { ActionPort, ActionRequest } from './server/actions.ts'
export { type ConsoleServer, serveConsole } from './server/console-server.ts'
export { followSnapshots } from './server/snapshot-view.ts'
