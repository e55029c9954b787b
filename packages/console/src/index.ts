export type { SourceEvent, ExplainedReason } from './model/event.ts'
export { ConsoleModel } from './model/model.ts'
export type {
  Absent,
  Amounts,
  ClaimRow,
  ConsoleResource,
  ConsoleView,
  DecisionRow,
  GroupRow,
  Header,
  NextAction,
  NodeRow,
  OfferingRow,
  PendingPodRow,
  PendingReason,
  PodCounts,
  PodOnNode,
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
export {
  type AnswerPort,
  Answers,
  type GivenAnswer,
  nothingToReplay,
  type Question,
} from './answers/answers.ts'
export type {
  ConsoleFacts,
  FieldHint,
  FirstPool,
  ReadManifests,
  ReplayAnswer,
  ReplayedVariant,
  SimulatedChanges,
  StartAnswer,
} from './answers/facts.ts'
export type { ObjectEvent, ObjectReader } from './answers/object.ts'
export type { ObjectRef } from './model/object-ref.ts'
export type { Action, ActionPort, ActionRequest, PlannedAction, Target } from './actions/request.ts'
export { type ConsoleServer, serveConsole } from './server/console-server.ts'
export {
  type OpenedPages,
  serveTeamConsole,
  type TeamConsoleOptions,
  type TeamConsoleServer,
  type TokenReview,
} from './server/team-server.ts'
export type { FollowedCluster } from './server/followed-cluster.ts'
export { followSnapshots, snapshotView } from './server/snapshot-view.ts'
export { followCluster } from './sources/live.ts'
export { keepYoungSpaceSmall } from './sources/young-space.ts'
export { snapshotEvents } from './sources/snapshot.ts'
export { Timeline } from './sources/timeline.ts'
export type { LabelMatcher } from './terminal/filter.ts'
export { type ColorDepth, colorDepthOf, defaultStyle, paintWith, styleColorsOf } from './terminal/paint.ts'
export { changeLines, groupText, tableText } from './terminal/plain.ts'
export { sortedNodes } from './terminal/lists.ts'
export type { Terminal } from './terminal/screen.ts'
export type { Sorting } from './terminal/state.ts'
export { Viewer, type ViewerOptions, type ViewerPorts } from './terminal/viewer.ts'
