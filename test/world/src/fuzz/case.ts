/** A fuzz case as data: objects, steps and faults. It can be replayed exactly. */
import type { KubeObject } from '@tenon/api'
import type { Settings } from '@tenon/operator'

/** Invalid responses of an API. */
export const unreadableAnswers = [
  'nothing',
  'emptyObject',
  'emptyList',
  'null',
  'halfBody',
  'html',
  'redirect',
  'noContent',
  'otherObject',
] as const

export type UnreadableAnswer = (typeof unreadableAnswers)[number]

/** Calls of one kind that get invalid responses for a while. */
export interface AnswerFault {
  readonly server: 'kubernetes' | 'cloud'
  readonly method: string
  /** Last fixed part of the path: a resource such as `nodeclaims`, or an operation such as `instance`. */
  readonly resource: string
  /** Whether the path names one object. */
  readonly isSingle: boolean
  readonly answer: UnreadableAnswer
  readonly atMs: number
  /** Number of affected calls; absent: all calls within a duration in milliseconds. */
  readonly times?: number
  readonly forMs?: number
}

/** A change while the case is played. */
export interface Step {
  readonly atMs: number
  readonly create?: KubeObject
  readonly delete?: ObjectName
  /** JSON merge patch. */
  readonly patch?: ObjectName & { readonly by: object }
}

interface ObjectName {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/** Properties of the environment that a manifest cannot express. */
export interface Surroundings {
  readonly gitVersion?: string
  /** Percentage of the nominal memory that guests see. */
  readonly memoryPercent?: number
  /** Maximum number of volumes that a node attaches. */
  readonly volumesPerNode?: number
  /** Instance types for which the cloud has no capacity. */
  readonly soldOut?: readonly string[]
  /** Instance types without a price; only if the engine runs alone. */
  readonly unpriced?: readonly string[]
  /** The cloud's quota of instances; at Clever Cloud of workers' vCPUs. */
  readonly quota?: number
  /** A scheduler plugin rejects pods with these values of the label `app` on every node. */
  readonly refusedApps?: readonly string[]
  readonly answers?: readonly AnswerFault[]
}

/** Where cases are played. */
export type FuzzProvider = 'exoscale' | 'kwok' | 'clever-cloud'

export interface Case {
  readonly part: string
  readonly seed: number
  readonly provider: FuzzProvider
  /** Instance types in the file format of the provider `kwok`; default: its own catalogue. */
  readonly catalogue?: readonly object[]
  /** Created in this order before the operator starts. Objects that the API server rejects are omitted. */
  readonly objects: readonly KubeObject[]
  readonly steps: readonly Step[]
  readonly settings: CaseSettings
  readonly surroundings: Surroundings
  /** Virtual minutes after the last step or fault. */
  readonly minutes: number
}

/** Settings of the operator that differ from the defaults. */
export type CaseSettings = Partial<
  Pick<Settings, 'compatibility' | 'preferences' | 'minValues'> & {
    readonly featureGates: Partial<Settings['featureGates']>
  }
>

/** A violation that an oracle found. */
export interface Finding {
  readonly oracle: Oracle
  /** One sentence that names the objects. */
  readonly text: string
  readonly atMs: number
}

/** The oracles; docs/fuzz.md describes each. */
type Oracle =
  | 'noThrow'
  | 'everyPodRuns'
  | 'noUselessNodes'
  | 'noIdleNodes'
  | 'reasonTold'
  | 'nothingLost'
  | 'noHigherPrice'
  | 'calmStart'
  | 'saysOnce'
  | 'sameUnderOtherNames'
  | 'invariantsHold'
  | 'noHang'
