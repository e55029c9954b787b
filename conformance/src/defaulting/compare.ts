/** Normalizes the responses of API servers, so that two of them can be compared. */
import type { Fields } from './odd-draw.ts'

/** A response of either API server. */
export interface ServerAnswer {
  readonly status: number
  readonly body: Fields
}

type Loose = Record<string, unknown>

const record = (value: unknown): Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {}
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])

/** What is compared: the stored object, or how it was rejected. */
export function essenceOf(asked: Fields, { status, body }: ServerAnswer): unknown {
  if (status >= 400) return { status, causes: causesOf(status, body) }
  const { uid, name } = record(body['metadata'])
  // The stored object may contain its own UID and name, for example in a Job's selector.
  const known = [[String(uid), 'UID'], ...(record(asked['metadata'])['name'] ? [] : [[String(name), 'NAME']])]
  const text = known.reduce((all, [from = '', to = '']) => all.replaceAll(from, to), JSON.stringify(body))
  return sorted({ status, object: withoutOwn(asked, JSON.parse(text) as Loose) })
}

/** Fields and types of errors; messages differ in what they quote. */
function causesOf(status: number, body: Fields): Loose {
  if (status !== 422) return {}
  const causes = list(record(body['details'])['causes']).map(record)
  return Object.fromEntries(causes.map(({ field, reason }) => [`${String(field)} ${String(reason)}`, true]))
}

/** Fields whose values each server generates. */
const ownMetadata: ReadonlySet<string> = new Set([
  'uid',
  'creationTimestamp',
  'managedFields',
  'resourceVersion',
  'selfLink',
])
const ownElsewhere: ReadonlySet<string> = new Set([
  'lastTransitionTime',
  'lastPhaseTransitionTime',
  'lastProbeTime',
  'timeAdded',
])

/** Drops fields that differ for a known reason. */
function withoutOwn(asked: Fields, object: Loose): Loose {
  const metadata = Object.entries(record(object['metadata'])).filter(([key]) => !ownMetadata.has(key))
  const bare = withoutKeys({ ...object, metadata: Object.fromEntries(metadata) }, ownElsewhere) as Loose
  const listed = differentForAReason.find(({ kind }) => kind === object['kind'])
  return listed === undefined ? bare : listed.without(bare, asked)
}

interface Listed {
  readonly kind: string
  readonly without: (object: Loose, asked: Fields) => Loose
}

const withoutFinalizer = (finalizer: string) => (object: Loose) => {
  const metadata = record(object['metadata'])
  const finalizers = list(metadata['finalizers']).filter((each) => each !== finalizer)
  return { ...object, metadata: { ...metadata, finalizers } }
}

/** What the embedded API server omits, and why. */
const differentForAReason: readonly Listed[] = [
  // No program runs in a container, so none needs a token of its service account.
  {
    kind: 'Pod',
    without: (object) => {
      const spec = record(object['spec'])
      const isToken = (each: unknown): boolean => String(record(each)['name']).startsWith('kube-api-access-')
      const unmounted = (containers: unknown) =>
        Array.isArray(containers)
          ? containers.map((each: unknown) => ({
              ...record(each),
              volumeMounts: list(record(each)['volumeMounts']).filter((mount) => !isToken(mount)),
            }))
          : containers
      return {
        ...object,
        spec: {
          ...spec,
          volumes: list(spec['volumes']).filter((volume) => !isToken(volume)),
          containers: unmounted(spec['containers']),
          initContainers: unmounted(spec['initContainers']),
        },
      }
    },
  },
  // Claims and volumes in use are not protected.
  { kind: 'PersistentVolumeClaim', without: withoutFinalizer('kubernetes.io/pvc-protection') },
  { kind: 'PersistentVolume', without: withoutFinalizer('kubernetes.io/pv-protection') },
  // Deprecated since Kubernetes 1.8, and without effect.
  {
    kind: 'DaemonSet',
    without: (object) => {
      const { annotations, ...rest } = record(object['metadata'])
      const { 'deprecated.daemonset.template.generation': _generation, ...kept } = record(annotations)
      return {
        ...object,
        metadata: { ...rest, ...(Object.keys(kept).length > 0 && { annotations: kept }) },
      }
    },
  },
  // Kept, with a Warning; Kubernetes drops it silently.
  {
    kind: 'StatefulSet',
    without: (object) => {
      const spec = record(object['spec'])
      const strategy = record(spec['updateStrategy'])
      const update = record(strategy['rollingUpdate'])
      if (update['maxUnavailable'] === undefined) return object
      const { maxUnavailable: _dropped, ...kept } = update
      return { ...object, spec: { ...spec, updateStrategy: { ...strategy, rollingUpdate: kept } } }
    },
  },
  // A Job gets the labels of its template too; kube-apiserver only adds its own when it reads the Job.
  {
    kind: 'Job',
    without: (object, asked) => {
      const template = record(record(asked['spec'])['template'])
      if (Object.keys(record(record(template['metadata'])['labels'])).length > 0) return object
      const { labels: _found, ...rest } = record(object['metadata'])
      return { ...object, metadata: rest }
    },
  },
  // Without a class: the scheduler does not preempt for a group as a whole, so the priorities of its pods count.
  {
    kind: 'PodGroup',
    without: (object) => {
      const { priority, ...spec } = record(object['spec'])
      return { ...object, spec: priority === 0 ? spec : { ...spec, priority } }
    },
  },
  // A controller checks the types of a policy; the embedded API server does so immediately.
  { kind: 'ValidatingAdmissionPolicy', without: ({ status: _status, ...object }) => object },
  // Its status is written by whoever registers it: a kubelet.
  { kind: 'Node', without: ({ status: _status, ...object }) => object },
  // Each server has its own addresses and ports.
  {
    kind: 'Service',
    without: (object, asked) => {
      const spec = record(object['spec'])
      const wanted = record(asked['spec'])
      const assigned = (field: string) =>
        !wanted[field] && spec[field] !== undefined ? { [field]: 'assigned' } : {}
      return {
        ...object,
        spec: {
          ...spec,
          ...assigned('clusterIP'),
          ...(!wanted['clusterIP'] && assigned('clusterIPs')),
          ...assigned('healthCheckNodePort'),
          ports: list(spec['ports']).map((port, index) => {
            const isWanted = Boolean(record(list(wanted['ports'])[index])['nodePort'])
            const { nodePort, ...rest } = record(port)
            return nodePort === undefined || isWanted ? port : { ...rest, nodePort: 'assigned' }
          }),
        },
      }
    },
  },
]

function withoutKeys(value: unknown, keys: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutKeys(each, keys))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([key]) => !keys.has(key))
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutKeys(each, keys)]))
}

/** Sorts fields. Unset lists are null on one server and absent or empty on the other. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const isSet = (each: unknown): boolean =>
    each !== null && each !== undefined && !(Array.isArray(each) && each.length === 0)
  const entries = Object.entries(value)
    .filter(([, each]) => isSet(each))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]))
}

/** Paths at which two values differ, each with both values. */
export function differences(real: unknown, embedded: unknown, path = ''): readonly string[] {
  if (JSON.stringify(real) === JSON.stringify(embedded)) return []
  const bothLists = Array.isArray(real) && Array.isArray(embedded)
  const isRecord = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!bothLists && !(isRecord(real) && isRecord(embedded))) {
    return [`${path}: real ${JSON.stringify(real)}, embedded ${JSON.stringify(embedded)}`]
  }
  const [left, right] = [real as Loose, embedded as Loose]
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])]
  return keys.flatMap((key) => differences(left[key], right[key], `${path}.${key}`))
}
