/** The input of invariants, and how they report violations. */
import { type KubeObject, type Node, type NodeClaim, type NodePool, type Pod, ownValue } from '@tenon/api'
import type { Clock, HttpRequest } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { CloudDemand, WorldCloud } from '../cloud/world-cloud.ts'
import type { OperatorProcess } from '../process/operator-process.ts'
import type { Story } from '../story.ts'

/** A write of a controller, at the moment at which it takes effect. */
export interface ApiWrite {
  readonly process: OperatorProcess
  readonly method: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
  readonly request: HttpRequest
}

/** A question of a controller about one object, and the status of the answer as it leaves the server. */
interface ApiRead {
  readonly process: OperatorProcess
  readonly plural: string
  readonly name: string
  readonly status: number
}

/** A write of a controller to the cloud, at the moment at which it is sent. */
interface CloudWrite {
  readonly process: OperatorProcess
  readonly request: HttpRequest
  /** What it asks for, if it is about an instance. */
  readonly demand: CloudDemand
}

/** What a rule wants to be told. */
export interface Rule {
  readonly apiWrite?: (write: ApiWrite) => void
  /** After a write has been answered. */
  readonly apiWritten?: (write: ApiWrite) => void
  readonly apiRead?: (read: ApiRead) => void
  readonly cloudWrite?: (write: CloudWrite) => void
  /** After a write to the cloud has been answered. */
  readonly cloudWritten?: () => void
  /** `now` is undefined when the object has gone. */
  readonly pod?: (now: Pod | undefined, before: Pod | undefined) => void
  readonly node?: (now: Node | undefined, before: Node | undefined) => void
  readonly claim?: (now: NodeClaim | undefined, before: NodeClaim | undefined) => void
  readonly pool?: (now: NodePool | undefined, before: NodePool | undefined) => void
  /** An object of the cluster that is the cloud's. */
  readonly cloudObject?: (now: KubeObject | undefined, before: KubeObject | undefined) => void
  /** A controller has bought an instance for pods that wait; up to five of them, as `namespace/name`. */
  readonly bought?: (claim: string, pods: readonly string[]) => void
  /** A controller that leads begins to end cleanly, and has ended so. */
  readonly ending?: (process: OperatorProcess) => void
  readonly ended?: (process: OperatorProcess) => void
  /** Once a virtual minute. */
  readonly minute?: () => void
}

/** An invariant that did not hold. */
export interface Violation {
  readonly invariant: string
  readonly text: string
  /** Virtual milliseconds since the start. */
  readonly atMs: number
}

/** The world as rules see it: the truth of the servers, not what a controller has cached. */
export interface Scene {
  readonly world: World
  readonly cloud: WorldCloud
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Longest time by which a controller of this run may see the cluster late. */
  readonly blindMs: number
  /** How often a request to the API server has come to grief so far. */
  readonly failedRequests: () => number
  /** Whether a controller may see the cluster later than {@link blindMs}, or otherwise than it is. */
  readonly viewsMayBeWrong: () => boolean
  /** Whether the cloud itself may have made a second instance for a claim. */
  readonly mayHaveTwo: (claim: string) => boolean
  readonly violate: (invariant: string, text: string) => void
  /** How long a pod has been bound, in milliseconds; 0 when it is not. */
  readonly boundMs: (pod: Pod) => number
  /** The pod of `namespace/name`. */
  readonly podByKey: (key: string) => Pod | undefined
  readonly podsOn: (nodeName: string) => readonly Pod[]
  readonly claimByName: (name: string) => NodeClaim | undefined
  readonly claimByProviderId: (providerId: string) => NodeClaim | undefined
  readonly nodeByName: (name: string) => Node | undefined
  readonly nodeByProviderId: (providerId: string) => Node | undefined
}

/** An invariant. Each has a name under which a failing seed reports it. */
export type Invariant = (scene: Scene) => Rule

/** Controllers' clocks are wrong by no more than this, jumps included. */
export const clockErrorMs = 25_000
/** Longest time by which a controller may see the cluster late: delayed watches, lists, retries. */
export const blindMsIn = ({ faults }: Story): number => (faults === 'none' ? quietMs : 45_000)
/** The same where nothing goes wrong. */
export const quietMs = 5_000

export const annotation = ({ metadata }: KubeObject, key: string): string | undefined =>
  ownValue(metadata.annotations, key)
