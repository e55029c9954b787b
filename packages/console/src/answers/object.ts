/** The page of an object: what is known of it, its events, and what it belongs to (page.md 2). */
import { isRecord, type KubeObject, type ObjectMeta, ownValue } from '@tenon/api'
import type { ConsoleModel } from '../model/model.ts'
import type { ObjectRef } from '../model/object-ref.ts'
import type { Relations } from '../model/relations.ts'
import type { PodOnNode } from '../model/view.ts'
import { withoutSecrets } from './secrets.ts'

/** An event of an object. */
export interface ObjectEvent {
  /** RFC 3339; absent if the event has no time. */
  readonly at?: string
  readonly type: string
  readonly reason: string
  readonly message: string
  readonly count: number
}

type ObjectReading =
  | { readonly kind: 'read'; readonly object: KubeObject }
  | { readonly kind: 'gone' }
  /** It may be there: the right is missing, or its kind is not served. */
  | { readonly kind: 'unread'; readonly why: string }

/** Reads single objects with the user's rights. */
export interface ObjectReader {
  /** @throws Error if the cluster does not answer. */
  read(ref: ObjectRef, signal: AbortSignal): Promise<ObjectReading>
  /**
   * Newest first.
   * @param uid leaves out events of an earlier object of the same name; undefined if unknown.
   * @returns why there are none to read otherwise.
   */
  events(
    ref: ObjectRef,
    uid: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly ObjectEvent[] | { readonly absent: string }>
}

export interface ShownCondition {
  readonly type: string
  readonly status: string
  readonly since?: string
  readonly reason: string
  readonly message: string
}

/** What an object tells of itself. */
export interface ShownObject {
  readonly createdAt?: string
  /** Since when it is being deleted. */
  readonly deletingSince?: string
  readonly labels: readonly (readonly [key: string, value: string])[]
  /** `key=value:Effect`. */
  readonly taints: readonly string[]
  /** Taints that are removed before pods come, of NodePools and NodeClaims. */
  readonly startupTaints: readonly string[]
  readonly conditions: readonly ShownCondition[]
  /** Such as the phase of a pod. */
  readonly facts: readonly (readonly [title: string, value: string])[]
  /** Without secrets and managed fields. */
  readonly yaml: string
}

export interface ObjectAnswer {
  readonly object:
    | ({ readonly kind: 'read' } & ShownObject)
    | { readonly kind: 'gone' }
    | { readonly kind: 'unread'; readonly why: string }
  readonly events: readonly ObjectEvent[] | { readonly absent: string }
  readonly relations: Relations
  /** Of a node or a workload; `all` counts those that are left out, too. */
  readonly pods?: { readonly all: number; readonly rows: readonly PodOnNode[] }
}

const shownEvents = 50
/** A workload may have ten thousand pods. */
const shownPods = 500

export async function objectAnswer(
  ref: ObjectRef,
  {
    model,
    objects,
    yamlText,
  }: {
    readonly model: Pick<ConsoleModel, 'podsOf' | 'podsOn' | 'relationsOf'>
    readonly objects: ObjectReader
    readonly yamlText: (object: object) => string
  },
  signal: AbortSignal,
): Promise<ObjectAnswer> {
  const reading = await objects.read(ref, signal)
  const object = reading.kind === 'read' ? reading.object : undefined
  const events = await objects.events(ref, object?.metadata.uid, signal)
  const relations = { ...model.relationsOf(ref), ...(object !== undefined && relationsIn(object, ref)) }
  const pods = podsOf(ref, model)
  return {
    object:
      object === undefined ? (reading as Exclude<ObjectReading, { kind: 'read' }>) : shown(object, yamlText),
    events: 'absent' in events ? events : events.slice(0, shownEvents),
    relations,
    ...(pods !== undefined && { pods: { all: pods.length, rows: pods.slice(0, shownPods) } }),
  }
}

function podsOf(
  ref: ObjectRef,
  model: Pick<ConsoleModel, 'podsOf' | 'podsOn'>,
): readonly PodOnNode[] | undefined {
  if (ref.kind === 'Node') return model.podsOn(ref.name)
  const isWorkload = ref.namespace !== undefined && ref.kind !== 'Pod'
  return isWorkload ? model.podsOf(ref) : undefined
}

/** What only the object tells: owners of workloads, and of pods that have ended. */
function relationsIn({ metadata, spec }: Loose, { kind, namespace }: ObjectRef): Relations {
  if (namespace === undefined) return {}
  const owners = (metadata.ownerReferences ?? []).map(({ kind: owner, name }) => ({
    kind: owner,
    namespace,
    name,
  }))
  const node = kind === 'Pod' && typeof spec?.nodeName === 'string' ? spec.nodeName : ''
  return {
    // The model knows the Deployment behind a ReplicaSet.
    ...(kind !== 'Pod' && owners.length > 0 && { owners }),
    ...(node !== '' && { node: { kind: 'Node', name: node } }),
  }
}

/** What objects of all kinds may have; nobody checks those of a snapshot. */
interface Loose extends KubeObject {
  readonly metadata: ObjectMeta
  readonly spec?: {
    readonly nodeName?: unknown
    readonly replicas?: unknown
    readonly weight?: unknown
    readonly providerID?: unknown
    readonly taints?: readonly LooseTaint[]
    readonly startupTaints?: readonly LooseTaint[]
    readonly template?: {
      readonly spec?: {
        readonly taints?: readonly LooseTaint[]
        readonly startupTaints?: readonly LooseTaint[]
      }
    }
  }
  readonly status?: {
    readonly conditions?: readonly Readonly<Record<string, unknown>>[]
    readonly [field: string]: unknown
  }
}

interface LooseTaint {
  readonly key?: string
  readonly value?: string
  readonly effect?: string
}

type FieldsByKind = Readonly<Record<string, readonly (readonly [title: string, path: readonly string[]])[]>>

/** Fields that are worth a line, by their titles. */
const factFields: FieldsByKind = {
  Node: [
    ['Provider ID', ['spec', 'providerID']],
    ['Kubelet', ['status', 'nodeInfo', 'kubeletVersion']],
    ['Image', ['status', 'nodeInfo', 'osImage']],
  ],
  NodeClaim: [
    ['Provider ID', ['status', 'providerID']],
    ['Image', ['status', 'imageID']],
    ['Expires after', ['spec', 'expireAfter']],
  ],
  NodePool: [
    ['Weight', ['spec', 'weight']],
    ['Consolidation', ['spec', 'disruption', 'consolidationPolicy']],
    ['Consolidates after', ['spec', 'disruption', 'consolidateAfter']],
  ],
  Pod: [
    ['Phase', ['status', 'phase']],
    ['Priority class', ['spec', 'priorityClassName']],
    ['QoS class', ['status', 'qosClass']],
  ],
  CronJob: [['Schedule', ['spec', 'schedule']]],
  DaemonSet: [
    ['Wanted', ['status', 'desiredNumberScheduled']],
    ['Ready', ['status', 'numberReady']],
  ],
  Job: [
    ['Completions', ['spec', 'completions']],
    ['Succeeded', ['status', 'succeeded']],
    ['Failed', ['status', 'failed']],
  ],
}
const replicaFields = [
  ['Replicas', ['spec', 'replicas']],
  ['Ready', ['status', 'readyReplicas']],
] as const

function shown(object: Loose, yamlText: (object: object) => string): ObjectAnswer['object'] {
  const { metadata, spec, status } = object
  const { creationTimestamp, deletionTimestamp } = metadata
  const template = spec?.template?.spec
  return {
    kind: 'read',
    ...(creationTimestamp !== undefined && { createdAt: creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletingSince: deletionTimestamp }),
    labels: Object.entries(metadata.labels ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    taints: (spec?.taints ?? template?.taints ?? []).map(taintText),
    startupTaints: (spec?.startupTaints ?? template?.startupTaints ?? []).map(taintText),
    conditions: (status?.conditions ?? []).map(conditionOf),
    facts: factsOf(object),
    yaml: yamlText(withoutSecrets(object)),
  }
}

function factsOf(object: Loose): ShownObject['facts'] {
  const ofWorkload = object.spec?.replicas === undefined ? [] : replicaFields
  const fields = ownValue(factFields, object.kind) ?? ofWorkload
  return fields.flatMap(([title, path]): readonly (readonly [string, string])[] => {
    let value: unknown = object
    for (const field of path) value = isRecord(value) ? ownValue(value, field) : undefined
    return typeof value === 'string' || typeof value === 'number' ? [[title, String(value)]] : []
  })
}

function taintText({ key = '', value = '', effect = '' }: LooseTaint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`
}

function conditionOf(condition: Readonly<Record<string, unknown>>): ShownCondition {
  const text = (field: string) => {
    const value = ownValue(condition, field)
    return typeof value === 'string' ? value : ''
  }
  const since = text('lastTransitionTime')
  return {
    type: text('type'),
    status: text('status'),
    ...(since !== '' && { since }),
    reason: text('reason'),
    message: text('message'),
  }
}
