/** The input of invariants, and how they report violations. */
import { type KubeObject, type Node, type NodeClaim, type NodePool, type Pod, ownValue } from '@tenon/api'
import type { Clock, HttpRequest } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { CloudDemand, WorldCloud } from '../cloud/world-cloud.ts'
import type { OperatorProcess } from '../process/operator-process.ts'
import type { Story } from '../story.ts'

/** A write of a controller at the moment when it takes effect. */
export interface ApiWrite {
  readonly process: OperatorProcess
  readonly method: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
  readonly request: HttpRequest
}

/** A read of one object by a controller, with the status of the response as the server sends it. */
interface ApiRead {
  readonly process: OperatorProcess
  readonly plural: string
  readonly name: string
  readonly status: number
}

/** A write of a controller to the cloud, when it is sent. */
interface CloudWrite {
  readonly process: OperatorProcess
  readonly request: HttpRequest
  /** What it creates or deletes, if it is about an instance. */
  readonly demand: CloudDemand
}

/** The events that a rule handles. */
export interface Rule {
  readonly apiWrite?: (write: ApiWrite) => void
  /** After a write was answered. */
  readonly apiWritten?: (write: ApiWrite) => void
  readonly apiRead?: (read: ApiRead) => void
  readonly cloudWrite?: (write: CloudWrite) => void
  /** After a write to the cloud was answered. */
  readonly cloudWritten?: () => void
  /** `now` is undefined if the object was deleted. */
  readonly pod?: (now: Pod | undefined, before: Pod | undefined) => void
  readonly node?: (now: Node | undefined, before: Node | undefined) => void
  readonly claim?: (now: NodeClaim | undefined, before: NodeClaim | undefined) => void
  readonly pool?: (now: NodePool | undefined, before: NodePool | undefined) => void
  /** A cluster object that belongs to the cloud. */
  readonly cloudObject?: (now: KubeObject | undefined, before: KubeObject | undefined) => void
  /** A controller has launched an instance for pending pods; up to five of them, as `namespace/name`. */
  readonly bought?: (claim: string, pods: readonly string[]) => void
  /** A leader begins a clean shutdown, and has ended. */
  readonly ending?: (process: OperatorProcess) => void
  readonly ended?: (process: OperatorProcess) => void
  /** Once per virtual minute. */
  readonly minute?: () => void
}

/** An invariant that did not hold. */
export interface Violation {
  readonly invariant: string
  readonly text: string
  /** Virtual milliseconds since the start. */
  readonly atMs: number
}

/** The world as rules see it: the true state of the servers, not a controller's cache. */
export interface Scene {
  readonly world: World
  readonly cloud: WorldCloud
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Maximum delay with which a controller of this run may see the cluster. */
  readonly blindMs: number
  /** How long a kubelet is silent before its Node is not ready any more. */
  readonly nodeMonitorGraceMs: number
  /** Number of requests to the API server that have failed so far. */
  readonly failedRequests: () => number
  /** Whether a controller may see the cluster later than {@link blindMs}, or wrongly. */
  readonly viewsMayBeWrong: () => boolean
  /** Whether the cloud itself may have created a second instance for a claim. */
  readonly mayHaveTwo: (claim: string) => boolean
  readonly violate: (invariant: string, text: string) => void
  /** How long a pod has been bound, in milliseconds; 0 if it is not. */
  readonly boundMs: (pod: Pod) => number
  /** The pod of `namespace/name`. */
  readonly podByKey: (key: string) => Pod | undefined
  readonly podsOn: (nodeName: string) => readonly Pod[]
  readonly claimByName: (name: string) => NodeClaim | undefined
  readonly claimByProviderId: (providerId: string) => NodeClaim | undefined
  readonly nodeByName: (name: string) => Node | undefined
  readonly nodeByProviderId: (providerId: string) => Node | undefined
}

/** An invariant. A failing seed reports it by its name. */
export type Invariant = (scene: Scene) => Rule

/** Maximum error of controllers' clocks, including jumps. */
export const clockErrorMs = 25_000
/** Maximum delay with which a controller may see the cluster: delayed watches, lists, retries. */
export const blindMsIn = ({ faults }: Story): number => (faults === 'none' ? quietMs : 45_000)
/** The same without faults. */
export const quietMs = 5_000

export const annotation = ({ metadata }: KubeObject, key: string): string | undefined =>
  ownValue(metadata.annotations, key)
