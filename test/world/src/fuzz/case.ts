/** One fuzz case as data: objects, steps and faults. It can be replayed exactly. */
import type { KubeObject } from '@tenon/api'
import type { Settings } from '@tenon/operator'

/** What an API answers in place of what is due. */
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

/** Calls of one kind that are answered unreadably for a while. */
export interface AnswerFault {
  readonly server: 'kubernetes' | 'cloud'
  readonly method: string
  /** Last fixed part of the path: a resource such as `nodeclaims`, or an operation such as `instance`. */
  readonly resource: string
  /** Whether the path names one object. */
  readonly isSingle: boolean
  readonly answer: UnreadableAnswer
  readonly atMs: number
  /** Calls from then on, or all calls within so many milliseconds. */
  readonly times?: number
  readonly forMs?: number
}

/** What happens while the case is played. */
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

/** What a manifest cannot say. */
export interface Surroundings {
  readonly gitVersion?: string
  /** Part of the nominal memory that guests see, in percent. */
  readonly memoryPercent?: number
  /** Volumes that a node attaches at most. */
  readonly volumesPerNode?: number
  /** Instance types that the cloud has no room for. */
  readonly soldOut?: readonly string[]
  /** Instance types without a price; only where the engine alone decides. */
  readonly unpriced?: readonly string[]
  /** Instances that the cloud lets the organisation have; at Clever Cloud vCPUs of workers. */
  readonly quota?: number
  /** Pods whose label `app` is one of these are refused by a plugin of the scheduler on every node. */
  readonly refusedApps?: readonly string[]
  readonly answers?: readonly AnswerFault[]
}

/** Where cases are played. */
export type FuzzProvider = 'exoscale' | 'kwok' | 'clever-cloud'

export interface Case {
  readonly part: string
  readonly seed: number
  readonly provider: FuzzProvider
  /** Instance types in the file format of the provider `kwok`; its own catalogue unless given. */
  readonly catalogue?: readonly object[]
  /** Created in this order, before the operator starts. What the API server refuses is omitted. */
  readonly objects: readonly KubeObject[]
  readonly steps: readonly Step[]
  readonly settings: CaseSettings
  readonly surroundings: Surroundings
  /** Virtual time after the last step or fault. */
  readonly minutes: number
}

/** Behaviour of the operator that differs from its defaults. */
export type CaseSettings = Partial<
  Pick<Settings, 'compatibility' | 'preferences' | 'minValues'> & {
    readonly featureGates: Partial<Settings['featureGates']>
  }
>

/** What an oracle found. */
export interface Finding {
  readonly oracle: Oracle
  /** One sentence with the objects. */
  readonly text: string
  readonly atMs: number
}

/** What cases are judged by; docs/fuzz.md says what each demands. */
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
