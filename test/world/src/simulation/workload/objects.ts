import type { KubeObject, PodSpec, ResourceType } from '@tenon/api'

export const namespace = 'default'

function namespaced(group: string, kind: string, plural: string): ResourceType {
  return { group, version: 'v1', kind, plural, namespaced: true }
}

export const workloadTypes = {
  deployment: namespaced('apps', 'Deployment', 'deployments'),
  daemonSet: namespaced('apps', 'DaemonSet', 'daemonsets'),
  statefulSet: namespaced('apps', 'StatefulSet', 'statefulsets'),
  job: namespaced('batch', 'Job', 'jobs'),
  priorityClass: {
    group: 'scheduling.k8s.io',
    version: 'v1',
    kind: 'PriorityClass',
    plural: 'priorityclasses',
    namespaced: false,
  },
  storageClass: {
    group: 'storage.k8s.io',
    version: 'v1',
    kind: 'StorageClass',
    plural: 'storageclasses',
    namespaced: false,
  },
} as const satisfies Record<string, ResourceType>

export interface PodShape {
  /** Millicores. */
  readonly cpu: number
  /** MiB. */
  readonly memory: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly extended?: Readonly<Record<string, string>>
  readonly spec?: Partial<PodSpec>
}

/** A pod template, labelled `app: <name>`. */
export function podTemplate(name: string, shape: PodShape): object {
  const requests = { cpu: `${shape.cpu}m`, memory: `${shape.memory}Mi`, ...shape.extended }
  return {
    metadata: {
      labels: { app: name, ...shape.labels },
      ...(shape.annotations && { annotations: shape.annotations }),
    },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.k8s.io/pause',
          resources: { requests, ...(shape.extended && { limits: shape.extended }) },
        },
      ],
      ...shape.spec,
    },
  }
}

/** A Deployment, StatefulSet or DaemonSet with pods of one shape. */
export function workload(
  type: ResourceType,
  name: string,
  shape: PodShape,
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  const object = {
    apiVersion: `${type.group}/${type.version}`,
    kind: type.kind,
    metadata: { name, namespace },
    spec: { selector: { matchLabels: { app: name } }, template: podTemplate(name, shape), ...spec },
  }
  return object
}
