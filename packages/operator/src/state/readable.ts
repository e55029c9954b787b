/**
 * The check of what enters the caches. Nobody behind it has to expect a field of another type than the API
 * promises; only pods have a check of their own, as decisions tell them what is wrong.
 *
 * `null` means absent, as it does to Kubernetes. Of an object that cannot be read nothing is believed. Where its
 * absence would mean something (an instance would have no owner, a pod no protection), something stands in its place
 * that nobody acts on.
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
import { misshapenObjectFields } from '@tenon/engine/objects'

const problemTexts = new WeakMap<KubeObject, string>()

/** What is wrong with what the object stands for; undefined for an object that was read whole. */
export function unreadableText(object: KubeObject): string | undefined {
  return problemTexts.get(object)
}

/** Whether the object only stands in the place of one that cannot be read. */
export function isUnreadable(object: KubeObject): boolean {
  return problemTexts.has(object)
}

/** Told of each object that enters: what is wrong with it, or undefined. */
export type Reading = (object: KubeObject, problem: string | undefined) => void

/**
 * A transformation for a cache of one kind.
 * @param trim what is kept of objects that can be read; `held` was read whole, too.
 * @param standIn what takes the place of one that cannot be; nothing is kept of it otherwise.
 */
export function readable<T extends KubeObject>(
  kind: string,
  trim: (object: T, held?: T) => T,
  onRead: Reading,
  standIn?: (object: T) => T | undefined,
): (object: T, held?: T) => T | undefined {
  return (raw, held) => {
    const object = withoutNulls(raw)
    const problems = misshapenObjectFields(kind, object)
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

/** The value without fields that are `null`; the same value where there are none. */
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

/** A claim that no provider serves: it is there, and nothing is done about it. */
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

/** A NodePool that takes no part, as one that is not valid. */
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
  return misshapenObjectFields('NodePool', { ...withStatus, spec: placeholder }).length === 0
    ? withStatus
    : bare
}

const placeholder = { template: { spec: { nodeClassRef: { group: '', kind: 'Any', name: 'any' } } } }

/** A Node that takes no pods and is not missing. */
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

/** One that allows no disruption of any pod in its namespace: which pods it protects is not known. */
export function standInForBudget({ apiVersion, kind, metadata }: PodDisruptionBudget): PodDisruptionBudget {
  return {
    apiVersion,
    kind,
    metadata: plainMetadata(metadata),
    spec: { selector: {}, maxUnavailable: 0 },
    status: { disruptionsAllowed: 0 },
  }
}

/** As long as it is known of which node it tells, that node still has a volume. */
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

/** What the class configures is read by its provider. */
export function standInForNodeClass(nodeClass: NodeClass): NodeClass {
  const { status: _, ...rest } = nodeClass
  return { ...rest, metadata: plainMetadata(nodeClass.metadata) }
}

/** Whether an object as the API server tells it can be read. */
export function isWhole(kind: string, raw: KubeObject): boolean {
  return misshapenObjectFields(kind, withoutNulls(raw)).length === 0
}

/** Of objects of which only the name counts. */
export function standInByName<T extends KubeObject>({ apiVersion, kind, metadata }: T): T {
  // Only for kinds whose other fields are optional.
  return { apiVersion, kind, metadata: plainMetadata(metadata) } as T
}

/** A PodGroup or ProvisioningRequest about which nothing is decided. */
export function standInForGroup<T extends KubeObject>({ apiVersion, kind, metadata }: T): T {
  const isRequest = kind === autoscalingKinds.provisioningRequest.kind
  // Whoever reads the fields of one asks first whether it can be read; a request has the lists that it must have.
  const spec = isRequest ? { spec: { podSets: [], provisioningClassName: '' } } : {}
  return { apiVersion, kind, metadata: plainMetadata(metadata), ...spec } as unknown as T
}

/** What of the metadata can be read. */
function plainMetadata(metadata: ObjectMeta): ObjectMeta {
  const read: Record<string, unknown> = {}
  for (const name in metadata) {
    const value = ownValue(metadata as unknown as Fields, name)
    const probe = { metadata: { name: 'any', [name]: value } }
    // An object that is marked stays so.
    if (name === 'annotations' && value !== undefined) setOwn(read, name, textsOf(value))
    else if (misshapenObjectFields('Namespace', probe).length === 0) setOwn(read, name, value)
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
