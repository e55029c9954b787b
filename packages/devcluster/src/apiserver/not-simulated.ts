import { ownValue } from '@tenon/api'
import type { StoredObject } from '../contract.ts'
import { sameJson } from './equality.ts'
import { podTemplatePaths, valueAt } from './kinds/pod-templates.ts'

/** A field that is stored but has no effect in the embedded cluster. */
interface Gap {
  /** Path from the object, or from the spec of a pod or Job; empty for the whole kind. */
  readonly path: string
  /** Absent: any value. */
  readonly when?: (value: unknown) => boolean
  readonly why: string
}

const podGaps: readonly Gap[] = [
  { path: 'ephemeralContainers', why: 'containers of running pods are not simulated one by one' },
]

const jobGaps: readonly Gap[] = [{ path: 'managedBy', why: 'the Job is run by the embedded cluster' }]

const claimGaps: readonly Gap[] = [
  { path: 'dataSource', why: 'volumes hold no data: the claim gets an empty one' },
  { path: 'dataSourceRef', why: 'volumes hold no data: the claim gets an empty one' },
  { path: 'volumeAttributesClassName', why: 'volumes have no attributes to change' },
]

const unmeasured = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.some((metric: { readonly type?: string }) =>
    ['Pods', 'Object', 'External'].includes(metric.type ?? ''),
  )

const whole = (why: string): readonly Gap[] => [{ path: '', why }]

/** Gaps of each collection; paths begin at `spec`. */
const kindGaps: Readonly<Record<string, readonly Gap[]>> = {
  'networkpolicies.networking.k8s.io': whole('there is no traffic that it could bound'),
  'ingresses.networking.k8s.io': whole('no ingress controller runs unless you install one'),
  'apiservices.apiregistration.k8s.io': whole('requests are not passed on to other API servers'),
  'flowschemas.flowcontrol.apiserver.k8s.io': whole('requests are not limited'),
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': whole('requests are not limited'),
  'mutatingadmissionpolicies.admissionregistration.k8s.io': whole('no object is changed by it'),
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': whole('no object is changed by its policy'),
  'volumeattributesclasses.storage.k8s.io': whole('volumes have no attributes to change'),
  'horizontalpodautoscalers.autoscaling': [
    {
      path: 'metrics',
      when: unmeasured,
      why: 'only metrics of type Resource and ContainerResource are measured',
    },
  ],
  'statefulsets.apps': [
    {
      path: 'updateStrategy.rollingUpdate.maxUnavailable',
      when: (value) => value !== 1,
      why: 'pods are replaced one by one',
    },
  ],
  'certificatesigningrequests.certificates.k8s.io': whole('nothing is signed, even when approved'),
  'podgroups.scheduling.k8s.io': [
    {
      path: 'disruptionMode',
      when: (value) => value === 'PodGroup',
      why: 'the scheduler preempts pods one by one; Tenon heeds it',
    },
    { path: 'priorityClassName', why: 'the scheduler goes by the priority of the pods; Tenon heeds it' },
  ],
  persistentvolumeclaims: claimGaps,
  pods: podGaps,
  'jobs.batch': jobGaps,
}

/** Where a kind contains fields of a pod or Job. */
function templateGaps(collection: string): readonly (readonly [path: string, gaps: readonly Gap[]])[] {
  const path = ownValue(podTemplatePaths, collection)
  if (path === undefined) return []
  const jobs = collection === 'cronjobs.batch' ? [['spec.jobTemplate.spec', jobGaps] as const] : []
  return [...jobs, [`${path}.spec`, podGaps]]
}

/** All fields and kinds that {@link simulationWarnings} warns about. */
export function gapNames(): readonly string[] {
  const ofKinds = Object.entries(kindGaps).flatMap(([collection, gaps]) =>
    gaps.map(({ path }) => (path === '' ? (collection.split('.')[0] ?? '') : path)),
  )
  return [...new Set([...ofKinds, ...podGaps.map(({ path }) => path), ...jobGaps.map(({ path }) => path)])]
}

/** Warnings about fields without effect, except those that an update does not change. */
export function simulationWarnings(
  collection: string,
  object: StoredObject,
  old?: StoredObject,
): readonly string[] {
  const own = ownValue(kindGaps, collection) ?? []
  const places: (readonly [string, readonly Gap[]])[] = [['spec', own], ...templateGaps(collection)]
  return places.flatMap(([base, gaps]) =>
    gaps.flatMap(({ path, when, why }) => {
      if (path === '')
        return old === undefined ? [`${object.kind} has no effect on the embedded cluster: ${why}`] : []
      const full = `${base}.${path}`
      const value = valueAt(object, full)
      if (value === undefined || value === null || when?.(value) === false) return []
      if (old !== undefined && sameJson(value, valueAt(old, full))) return []
      return [`${full} has no effect on the embedded cluster: ${why}`]
    }),
  )
}
