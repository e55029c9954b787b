export { untilAborted, withDeadline } from './abortable.ts'
export type { BackoffOptions } from './backoff.ts'
export { type CacheOptions, createCache, type FollowingCache } from './cache/cache.ts'
export { type CacheRegistryOptions, createCacheRegistry, waitForSync } from './cache/registry.ts'
export type { ReflectorOptions } from './cache/reflector.ts'
export {
  type AccessReviews,
  type AccessRight,
  type AccessSubject,
  type ClientReviews,
  createAccessReviews,
  createClientReviews,
  reviewSelf,
} from './client/access-reviews.ts'
export {
  createKubeClient,
  type KubeClientOptions,
  type Listing,
  type ServedKind,
  type WatchingKubeClient,
} from './client/client.ts'
export type { RequestSample } from './client/requester.ts'
export type { WatchEvent, WatchOptions } from './client/watch.ts'
export { KubeConfigError } from './config/kubeconfig-errors.ts'
export {
  directKubeConfig,
  type KubeConfigOptions,
  type LoadedKubeConfig,
  loadKubeConfig,
  type ServerAddress,
} from './config/load.ts'
export {
  type Cache,
  type CacheRegistry,
  type Change,
  type Controller,
  type ControllerOptions,
  type DeleteOptions,
  done,
  type EventInput,
  type EventRecorder,
  type EvictOptions,
  isKubeError,
  isMissingRight,
  isNotServed,
  isUnavailable,
  type KubeClient,
  KubeError,
  type KubeErrorKind,
  type Lane,
  type ListOptions,
  type ObjectKey,
  type PatchOptions,
  type ReadFields,
  type ReconcileResult,
  type UpdateOptions,
  type WriteOptions,
} from './contract.ts'
export {
  type ControllerActivity,
  type ControllerDependencies,
  type WorkGate,
  type ControllerMetrics,
  createController,
  type ReconcileOutcome,
} from './controller/controller.ts'
export { TurnPace } from './turn-pace.ts'
export { createSingleton, type Singleton, type SingletonOptions } from './controller/singleton.ts'
export {
  createEventRecorder,
  type EventRecorderOptions,
  type FlushableEventRecorder,
} from './events/recorder.ts'
export { traceAnnotations, traceparentAnnotation } from './events/event-object.ts'
export {
  ClusterIdentity,
  identityAnnotation,
  identityNamespace,
  type IdentitySettings,
} from './identity/cluster-identity.ts'
export { fencedTransport } from './lease/fence.ts'
export {
  createLeaderElector,
  type LeaderElector,
  type LeaderElectorOptions,
} from './lease/leader-election.ts'
export type { PodPort } from './port-forward/pod-port.ts'
export { podTransport } from './port-forward/pod-transport.ts'
export { mergePatchOf } from './merge-patch.ts'
export type { Rate } from './token-bucket.ts'
