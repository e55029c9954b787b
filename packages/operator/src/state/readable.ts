/**
 * Validates objects as they enter the caches, so that no reader has to expect a field of another type than the API
 * promises. Pods are checked separately, as decisions report their problems on them.
 *
 * `null` means absent, as in Kubernetes. An invalid object is dropped. Where its absence would have an effect (an instance
 * without owner, a pod without protection), an inert stand-in takes its place.
 */
import {
  autoscalingKinds,
  isRecord,
  type KubeObject,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  type ObjectMeta,
  ownValue,
  type PodDisruptionBudget,
  setOwn,
  type VolumeAttachment,
} from '@tenon/api'
import { invalidObjectFields } from '@tenon/engine/objects'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'

const problemTexts = new WeakMap<KubeObject, string>()

/** What is wrong with the object that this stands in for; undefined for a valid object. */
export function unreadableText(object: KubeObject): string | undefined {
  return problemTexts.get(object)
}

/** Whether the object is a stand-in for an invalid one. */
export function isUnreadable(object: KubeObject): boolean {
  return problemTexts.has(object)
}

/** Called for each object that enters, with what is wrong with it. */
export type Reading = (object: KubeObject, problem: string | undefined) => void

/**
 * A transform for a cache of one kind.
 * @param trim reduces a valid object; `held` is its earlier state, valid too.
 * @param standIn for an invalid object; without one it is dropped.
 */
export function readable<T extends KubeObject>(
  kind: string,
  trim: (object: T, held?: T) => T,
  onRead: Reading,
  standIn?: (object: T) => T | undefined,
): (object: T, held?: T) => T | undefined {
  return (raw, held) => {
    const object = withoutNulls(raw)
    const problems = invalidObjectFields(kind, object)
    if (problems.length === 0) {
      onRead(object, undefined)
      return trim(object, held === undefined || isUnreadable(held) ? undefined : held)
    }
    const problem = problems.map(({ field, expected }) => `${field} must be ${expected}`).join('; ')
    onRead(object, problem)
    const substitute = standIn?.(object)
    if (substitute !== undefined) problemTexts.set(substitute, problem)
    return substitute
  }
}

/** Removes fields that are `null`; returns the same value if there are none. */
export function withoutNulls<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    let items: unknown[] | undefined
    for (const [at, item] of (value as readonly unknown[]).entries()) {
      const clean = withoutNulls(item)
      if (clean === item) continue
      items ??= [...(value as readonly unknown[])]
      items[at] = clean
    }
    return (items ?? value) as T
  }
  const fields = value as Fields
  let kept: Record<string, unknown> | undefined
  for (const name in fields) {
    const field = ownValue(fields, name)
    const clean = withoutNulls(field)
    if (clean === field && field !== null) continue
    kept ??= { ...fields }
    if (field === null) delete kept[name]
    else setOwn(kept, name, clean)
  }
  return (kept ?? value) as T
}

type Fields = Readonly<Record<string, unknown>>

/** A claim of no node class, so that no provider manages it. */
export function standInForClaim({ apiVersion, kind, metadata, status }: NodeClaim): NodeClaim {
  const { providerID, nodeName } = fieldsOf(status)
  return {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: { nodeClassRef: { group: '', kind: '', name: '' }, requirements: [] },
    status: {
      ...(typeof providerID === 'string' && { providerID }),
      ...(typeof nodeName === 'string' && { nodeName }),
    },
  }
}

/** A NodePool that takes no part in decisions. */
export function standInForPool({ apiVersion, kind, metadata, spec, status }: NodePool): NodePool {
  const {
    group,
    kind: refKind,
    name,
  } = fieldsOf(fieldsOf(fieldsOf(fieldsOf(spec)['template'])['spec'])['nodeClassRef'])
  const { conditions } = fieldsOf(status)
  const { replicas } = fieldsOf(spec)
  const bare: NodePool = {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: text(group), kind: text(refKind), name: text(name) },
          requirements: [],
        },
      },
      ...(Number.isSafeInteger(replicas) && { replicas: replicas as number }),
    },
  }
  const withStatus = { ...bare, status: { conditions } } as NodePool
  return invalidObjectFields('NodePool', { ...withStatus, spec: placeholder }).length === 0
    ? withStatus
    : bare
}

const placeholder = { template: { spec: { nodeClassRef: { group: '', kind: 'Any', name: 'any' } } } }

/** A Node that exists and takes no pods. */
export function standInForNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { providerID } = fieldsOf(spec)
  return {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: typeof providerID === 'string' ? { providerID } : {},
    // Whether a kubelet has ever reported.
    status: { nodeInfo: textsOf(fieldsOf(status)['nodeInfo']) },
  }
}

/** Allows no disruption of any pod in its namespace, as its selector is unknown. */
export function standInForBudget({ apiVersion, kind, metadata }: PodDisruptionBudget): PodDisruptionBudget {
  return {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: { selector: {}, maxUnavailable: 0 },
    status: { disruptionsAllowed: 0 },
  }
}

/** Keeps the fact that the node still has a volume, if the node is known. */
export function standInForAttachment({
  apiVersion,
  kind,
  metadata,
  spec,
}: VolumeAttachment): VolumeAttachment | undefined {
  const { nodeName, attacher } = fieldsOf(spec)
  if (typeof nodeName !== 'string') return undefined
  return {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: { nodeName, attacher: text(attacher), source: {} },
  }
}

/** The provider validates the spec. */
export function standInForNodeClass(nodeClass: NodeClass): NodeClass {
  const { status: _, ...rest } = nodeClass
  return { ...rest, metadata: plainMetadata(nodeClass.metadata) }
}

/** Whether an object from the API server is valid. */
export function isWhole(kind: string, raw: KubeObject): boolean {
  return invalidObjectFields(kind, withoutNulls(raw)).length === 0
}

/** Only for kinds whose other fields are optional. */
export function standInByName<T extends KubeObject>({ apiVersion, kind, metadata }: T): T {
  return { apiVersion, kind, metadata: plainMetadata(metadata) } as T
}

/** A PodGroup or ProvisioningRequest about which nothing is decided. */
export function standInForGroup<T extends KubeObject>({ apiVersion, kind, metadata }: T): T {
  const isRequest = kind === autoscalingKinds.provisioningRequest.kind
  // Readers check isUnreadable first; a request still has its mandatory lists.
  const spec = isRequest ? { spec: { podSets: [], provisioningClassName: '' } } : {}
  return { apiVersion, kind, metadata: plainMetadata(metadata), ...spec } as unknown as T
}

/** The valid part of the metadata. */
function plainMetadata(metadata: ObjectMeta): ObjectMeta {
  const read: Record<string, unknown> = {}
  for (const name in metadata) {
    const value = ownValue(metadata as unknown as Fields, name)
    const probe = { metadata: { name: 'any', [name]: value } }
    if (name === 'annotations' && value !== undefined) setOwn(read, name, textsOf(value))
    else if (invalidObjectFields('Namespace', probe).length === 0) setOwn(read, name, value)
  }
  return read as unknown as ObjectMeta
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  const texts: Record<string, string> = {}
  for (const [name, each] of Object.entries(fieldsOf(value)))
    if (typeof each === 'string') setOwn(texts, name, each)
  return texts
}

function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {}
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

interface Reported {
  readonly object: KubeObject
  readonly problem: string
}

/** Reports invalid objects once for each problem: in the log, and in events if this process leads. */
export class UnreadableObjects {
  readonly #logger: Logger
  readonly #reported = new Map<string, Reported>()
  #events: EventRecorder | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  readonly note = (object: KubeObject, problem: string | undefined): void => {
    if (problem === undefined && this.#reported.size === 0) return
    const { kind, metadata } = object
    const id = `${kind}/${metadata.namespace ?? ''}/${metadata.name}`
    if (this.#reported.get(id)?.problem === problem) return
    const fields = { object: id, ...(problem !== undefined && { problem }) }
    if (problem === undefined) {
      this.#reported.delete(id)
      this.#logger.info('an object is valid again', fields)
      return
    }
    const reported = { object, problem }
    this.#reported.set(id, reported)
    this.#logger.warn('an object is invalid and is ignored until it is fixed', fields)
    this.#record(reported)
  }

  lead(events: EventRecorder): void {
    this.#events = events
    for (const reported of this.#reported.values()) this.#record(reported)
  }

  #record({ object, problem }: Reported): void {
    const { apiVersion, kind, metadata } = object
    const { name, namespace, uid } = metadata
    this.#events?.record({
      object: {
        apiVersion,
        kind,
        metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
      },
      type: 'Warning',
      reason: 'Unreadable',
      message: `The ${kind} is invalid and is ignored until it is fixed: ${problem}`,
      dedupe: [uid ?? name, problem],
    })
  }
}
