/** Explains why a pod is pending, why a node still exists, and so on. */
export { Study } from './study/study.ts'
export {
  explainPending,
  PendingExplainer,
  type PendingExplanation,
  type PoolAnswer,
} from './explain/pending.ts'
export type { Misses, NearestMiss } from './misses/find.ts'
export { type ObjectPatch, patchCommand, patchOf } from './misses/patch.ts'
export type { AsOf } from './explain/as-of.ts'
export type { ClaimPhase } from './explain/claim-phase.ts'
export { gathered, type PodGroup } from './explain/gathered.ts'
export { explainNode, type NodeExplanation, type NodeNameKind } from './explain/node.ts'
export { explainNodePool, type NodePoolExplanation, type PoolBudget } from './explain/node-pool.ts'
export { type ExplainedPod, PodExplainer, type PodExplanation } from './explain/pod.ts'
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
