/** Random clusters: pools, classes, storage, and workloads of all kinds. */
import { type KubeObject, labels } from '@tenon/api'
import type { Dice } from '../../simulation/workload/workload-context.ts'
import { zones } from './catalogue.ts'
import type { Names } from './names.ts'
import { aPodSpec, type PodContext, type Rarity, values } from './pod-spec.ts'

/** The CSI driver of all volumes. */
export const csiDriver = 'csi.example.com'

export interface ClusterPlan {
  readonly dice: Dice
  readonly names: Names
  readonly zones: readonly string[]
  readonly most: PodContext['most']
  readonly rare: Rarity
  /** Maximum number of applications, and of pods of each. */
  readonly apps: number
  readonly replicas: number
}

/** Everything except NodePools and node classes. */
export function aWorkload(plan: ClusterPlan): readonly KubeObject[] {
  const { dice } = plan
  const storage = someStorage(plan)
  const priorities = plan.rare('priority', 0.3) ? priorityClasses : []
  const named = (kind: string): readonly string[] =>
    storage.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name)
  const apps = Array.from({ length: dice.between(1, plan.apps) }, (_, index) => `app-${index}`)
  const context = (app: string): PodContext => ({
    dice,
    names: plan.names,
    app,
    apps,
    zones: plan.zones,
    claims: named('PersistentVolumeClaim'),
    storageClasses: named('StorageClass'),
    priorityClasses: priorities.map(({ metadata }) => metadata.name),
    most: plan.most,
    rare: plan.rare,
  })
  const daemons = Array.from({ length: dice.oneOf([0, 0, 1, 1, 2]) }, (_, index) => aDaemonSet(plan, index))
  return [
    ...namespaces,
    ...priorities,
    ...storage,
    ...daemons,
    ...apps.flatMap((app) => anApplication(plan, context(app))),
  ]
}

const namespaces: readonly KubeObject[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other', labels: { tier: 'back' } } },
]

const priorityClasses: readonly KubeObject[] = [
  aPriority('high', 1_000_000),
  aPriority('low', -100_000_000),
  aPriority('lowest', -1_000_000_000),
]

function aPriority(name: string, value: number): KubeObject {
  const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value }
  return object
}

function anApplication(plan: ClusterPlan, context: PodContext): readonly KubeObject[] {
  const { dice, app, names } = context
  const template = {
    metadata: {
      labels: {
        app,
        ...(dice.chance(0.2) && { [names.tier]: dice.oneOf(values) }),
      },
      ...(dice.chance(0.04) && { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }),
    },
    spec: aPodSpec(context),
  }
  const namespace = dice.chance(0.08) ? 'other' : 'default'
  const replicas = dice.chance(0.5) ? dice.between(1, 3) : dice.between(1, plan.replicas)
  const selector = { matchLabels: { app } }
  const metadata = { name: app, namespace }
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec: {
      selector,
      ...dice.oneOf([{ maxUnavailable: 1 }, { minAvailable: '50%' }, { maxUnavailable: 0 }]),
    },
  }
  const bare = Array.from({ length: Math.min(replicas, 4) }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: `${app}-${index}`, namespace },
    spec: template.spec,
  }))
  const kind = dice.oneOf(['Deployment', 'Deployment', 'Deployment', 'StatefulSet', 'Pod', 'Job'] as const)
  if (kind === 'Pod') return bare
  const apiVersion = kind === 'Job' ? 'batch/v1' : 'apps/v1'
  const spec =
    kind === 'Job'
      ? {
          completions: replicas,
          parallelism: replicas,
          template: {
            metadata: {
              ...template.metadata,
              annotations: { 'tenon.sh/run-seconds': dice.oneOf(['30', '7200']) },
            },
            spec: { ...template.spec, restartPolicy: 'Never' },
          },
        }
      : {
          replicas,
          selector,
          template,
          ...(kind === 'StatefulSet' && { serviceName: app, podManagementPolicy: 'Parallel' }),
        }
  const workload = { apiVersion, kind, metadata, spec }
  return [workload, ...(dice.chance(0.15) ? [budget] : [])]
}

function aDaemonSet(plan: ClusterPlan, index: number): KubeObject {
  const { dice, names, rare } = plan
  const name = `daemon-${index}`
  const isOnHost = rare('hostNetwork', 0.15)
  const spec = {
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        priorityClassName: 'system-node-critical',
        containers: [
          {
            name: 'agent',
            image: 'registry.k8s.io/pause',
            resources: {
              requests: { cpu: dice.oneOf(['10m', '100m', '300m']), memory: dice.oneOf(['16Mi', '200Mi']) },
            },
            ...(isOnHost && { ports: [{ containerPort: 9100 }] }),
          },
        ],
        ...(isOnHost && { hostNetwork: true }),
        ...(dice.chance(0.7) && { tolerations: [{ operator: 'Exists' }] }),
        ...(dice.chance(0.2) && { nodeSelector: { [names.team]: dice.oneOf(values) } }),
      },
    },
  }
  const object = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name, namespace: 'default' }, spec }
  return object
}

function someStorage({ dice, rare, zones: own }: ClusterPlan): readonly KubeObject[] {
  if (!rare('volumes', 0.3)) return []
  const aClass = (name: string, provisioner: string, volumeBindingMode: string): KubeObject => {
    const object = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner,
      volumeBindingMode,
      reclaimPolicy: 'Delete',
    }
    return object
  }
  const aClaim = (name: string, storageClassName: string, mode: string): KubeObject => {
    const object = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default' },
      spec: { accessModes: [mode], storageClassName, resources: { requests: { storage: '1Gi' } } },
    }
    return object
  }
  const aVolume = (name: string, storageClassName: string, zone: string): KubeObject => {
    const object = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName,
        persistentVolumeReclaimPolicy: 'Retain',
        csi: { driver: csiDriver, volumeHandle: name },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: labels.zone, operator: 'In', values: [zone] }] }],
          },
        },
      },
    }
    return object
  }
  const mode = dice.oneOf(['ReadWriteOnce', 'ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'])
  return [
    aClass('late', csiDriver, 'WaitForFirstConsumer'),
    aClass('early', csiDriver, 'Immediate'),
    aClass('local', 'kubernetes.io/no-provisioner', 'WaitForFirstConsumer'),
    aClaim('late-0', 'late', mode),
    ...(dice.chance(0.5) ? [aClaim('early-0', 'early', mode)] : []),
    ...(dice.chance(0.4) ? [aClaim('local-0', 'local', 'ReadWriteOnce')] : []),
    ...(dice.chance(0.3) ? [aVolume('disk-0', 'local', dice.pick(own) ?? zones[0])] : []),
  ]
}
